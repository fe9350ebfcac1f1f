package home

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// controlName is the file of a run's directory that its controller holds locked,
// and that tells which process that is.
const controlName = "controller"

// ErrControlled is that a run has a controller, or that what ended with its last one
// has not all ended yet.
var ErrControlled = errors.New("the run has a controller")

// claim is what the file holds: the run's controller or, until it has taken the run
// over, who would become that.
type claim struct {
	job.Controller
	// Tentative: it has not done anything yet. Where it is gone, it never was the
	// controller, and Before was the last one; nil where nobody had written to the file.
	Tentative bool            `json:"tentative,omitempty"`
	Before    *job.Controller `json:"before,omitempty"`
}

// Control is the control of a run: until it is closed, here and in every process that
// has inherited File, nobody else can get it.
type Control struct {
	File *os.File

	self      job.Controller
	tentative bool   // Keep was not called yet
	before    []byte // what the file holds again then
}

// Control makes c the controller of a run that it has created. The error is
// ErrControlled where somebody else is.
func (r Run) Control(c job.Controller) (*Control, error) {
	control, err := r.lock(c)
	if err == nil {
		if err = control.Keep(); err != nil {
			err = errors.Join(fmt.Errorf("cannot become the controller of run %s: %w", r.ID, err), control.File.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return control, nil
}

// TakeOver makes c the controller of a run that somebody else has created, for a try:
// unless Keep is called before Close, or the process ends before that, the run has its
// last controller again. The error is ErrControlled where somebody has the control.
func (r Run) TakeOver(c job.Controller) (*Control, error) {
	control, err := r.lock(c)
	if err != nil {
		return nil, err
	}
	control.before, err = io.ReadAll(io.NewSectionReader(control.File, 0, maxClaim))
	if err == nil {
		control.tentative = true
		err = write(control.File, claim{Controller: c, Tentative: true, Before: parseClaim(control.before)})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot become the controller of run %s: %w", r.ID, err), control.Close())
	}
	return control, nil
}

// lock gets the control, without a word in the file.
func (r Run) lock(c job.Controller) (*Control, error) {
	fail := func(err error) (*Control, error) {
		return nil, fmt.Errorf("cannot become the controller of run %s: %w", r.ID, err)
	}
	file, err := safefile.OpenFile(r.controlPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrControlled
	}
	if err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	return &Control{File: file, self: c}, nil
}

// Keep makes who has the control the run's controller for good.
func (c *Control) Keep() error {
	if err := write(c.File, claim{Controller: c.self}); err != nil {
		return fmt.Errorf("cannot write %q: %w", c.File.Name(), err)
	}
	c.tentative = false
	return nil
}

// Close gives the control back. Where the run was not kept, its last controller is
// again who was that before.
func (c *Control) Close() error {
	var err error
	if c.tentative {
		if err = replace(c.File, c.before); err != nil {
			err = fmt.Errorf("cannot give the control of a run back: %w", err)
		}
	}
	return errors.Join(err, c.File.Close())
}

// Controlled reports whether a process has the run's control, as the lock on it is seen
// from this host. It is not known where the file cannot be opened or locked; a file
// system that keeps locks to each host tells only of this one.
func (r Run) Controlled() (controlled, known bool) {
	file, err := safefile.Open(r.controlPath())
	if err != nil {
		return false, false
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err == nil || errors.Is(err, syscall.EWOULDBLOCK)
}

// maxClaim is more bytes than any claim has.
const maxClaim = 64 << 10

func (r Run) controlPath() string { return filepath.Join(r.Dir, controlName) }

// write writes a claim over what the file held before.
func write(file *os.File, c claim) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replace(file, append(text, '\n'))
}

// replace writes text over what the file held before. Who reads meanwhile finds the one
// or the other, or nothing.
func replace(file *os.File, text []byte) error {
	if _, err := file.WriteAt(text, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)))
}

// parseClaim returns the run's controller as the file tells it: nil where it does not.
func parseClaim(text []byte) *job.Controller {
	var c claim
	// What follows the first value is the end of a longer one that was there before.
	if json.NewDecoder(bytes.NewReader(text)).Decode(&c) != nil || c.Controller == (job.Controller{}) {
		return nil
	}
	if alive, known := Alive(c.Controller); c.Tentative && known && !alive {
		return c.Before
	}
	return &c.Controller
}

// controller returns the process that was the last to become the run's controller;
// nil where that cannot be read.
func (r Run) controller() *job.Controller {
	text, err := safefile.ReadFile(r.controlPath(), maxClaim)
	if err != nil {
		return nil
	}
	return parseClaim(text)
}
