package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
)

// controlName is the file of a run's directory that its controller holds locked,
// and that tells which process that is.
const controlName = "controller"

// ErrControlled is that a run has a controller, or that what ended with its last one
// has not all ended yet.
var ErrControlled = errors.New("the run has a controller")

// Control makes c the run's controller: until the file is closed, here and in every
// process that has inherited it, nobody else can become one. Where somebody is, the
// error is ErrControlled.
func (r Run) Control(c job.Controller) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		return nil, fmt.Errorf("cannot become the controller of run %s: %w", r.ID, err)
	}
	file, err := os.OpenFile(filepath.Join(r.Dir, controlName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrControlled
	}
	if err == nil {
		err = tell(file, c)
	}
	if err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	return file, nil
}

// Disown has a file that Control has returned tell of the run's last controller again:
// who became it has done nothing. The file stays open.
func Disown(file *os.File, last job.Controller) error {
	if err := tell(file, last); err != nil {
		return fmt.Errorf("cannot give the control of a run back: %w", err)
	}
	return nil
}

// Controlled reports whether a process has the run's control, as the lock on it is seen
// from this host. It is not known where the file cannot be opened or locked; a file
// system that keeps locks to each host tells only of this one.
func (r Run) Controlled() (controlled, known bool) {
	file, err := os.Open(filepath.Join(r.Dir, controlName))
	if err != nil {
		return false, false
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err == nil || errors.Is(err, syscall.EWOULDBLOCK)
}

// tell writes c over what the file told before. Who reads meanwhile finds the one or
// the other, or nothing.
func tell(file *os.File, c job.Controller) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(append(text, '\n'), 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)) + 1)
}

// controller returns the process that was the last to become the run's controller;
// nil where that cannot be read.
func (r Run) controller() *job.Controller {
	file, err := os.Open(filepath.Join(r.Dir, controlName))
	if err != nil {
		return nil
	}
	defer file.Close()
	var c job.Controller
	if err := json.NewDecoder(file).Decode(&c); err != nil {
		return nil
	}
	return &c
}
