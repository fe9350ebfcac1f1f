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

// controlName is a file in a run's directory. The run's controller keeps it locked, and the file names the controller.
const controlName = "controller"

// ErrControlled is the error if a run has a controller, or if a process that its last
// controller has started still holds the lock.
var ErrControlled = errors.New("the run has a controller")

// claim is the content of the file: the run's controller or, during a takeover, the
// process that is about to become the controller.
type claim struct {
	job.Controller
	// Tentative is set during a takeover. If the process ends while Tentative is set, Before is
	// still the controller of the run. Before is nil if the file was empty.
	Tentative bool            `json:"tentative,omitempty"`
	Before    *job.Controller `json:"before,omitempty"`
}

// Control is the lock on a run. No other process can take the lock until this process and all
// processes that have inherited File have closed it.
type Control struct {
	File *os.File

	self      job.Controller
	tentative bool   // Keep was not called yet
	before    []byte // the content that Close restores if Keep was not called
}

// Control takes the lock for c, the process that has created the run. The error is
// ErrControlled if another process has it.
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

// TakeOver makes c the controller of a run that another process has created. If c closes the
// Control or ends without calling Keep, the previous controller counts as the run's controller
// again. The error is ErrControlled if another process has the lock.
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

// lock takes the lock. It does not write to the file.
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

// Keep makes a takeover final.
func (c *Control) Keep() error {
	if err := write(c.File, claim{Controller: c.self}); err != nil {
		return fmt.Errorf("cannot write %q: %w", c.File.Name(), err)
	}
	c.tentative = false
	return nil
}

// Close releases the lock. If Keep was not called after a takeover, the file names the previous controller again.
func (c *Control) Close() error {
	var err error
	if c.tentative {
		if err = replace(c.File, c.before); err != nil {
			err = fmt.Errorf("cannot give the control of a run back: %w", err)
		}
	}
	return errors.Join(err, c.File.Close())
}

// Controlled reports whether a process has the run's lock. known is false if the file cannot be opened or locked. If
// the file system does not share locks between hosts, Controlled sees only processes of this host.
func (r Run) Controlled() (controlled, known bool) {
	file, err := safefile.Open(r.controlPath())
	if err != nil {
		return false, false
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err == nil || errors.Is(err, syscall.EWOULDBLOCK)
}

// maxClaim limits the size of a claim, in bytes.
const maxClaim = 64 << 10

func (r Run) controlPath() string { return filepath.Join(r.Dir, controlName) }

// write replaces the content of the file by a claim.
func write(file *os.File, c claim) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replace(file, append(text, '\n'))
}

// replace replaces the content of the file. Meanwhile, a reader may find the old content, the new content, or neither.
func replace(file *os.File, text []byte) error {
	if _, err := file.WriteAt(text, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)))
}

// parseClaim returns the run's controller that the content of the file names. It returns nil if the run has none.
func parseClaim(text []byte) *job.Controller {
	var c claim
	// The text after the first value is the end of an earlier, longer value.
	if json.NewDecoder(bytes.NewReader(text)).Decode(&c) != nil || c.Controller == (job.Controller{}) {
		return nil
	}
	if alive, known := Alive(c.Controller); c.Tentative && known && !alive {
		return c.Before
	}
	return &c.Controller
}

// controller returns the process that was the last to become the run's controller. It returns nil if the file cannot be
// read.
func (r Run) controller() *job.Controller {
	text, err := safefile.ReadFile(r.controlPath(), maxClaim)
	if err != nil {
		return nil
	}
	return parseClaim(text)
}
