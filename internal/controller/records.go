package controller

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/journal"
)

// records are those of a run that this process controls.
type records struct {
	run     home.Run
	journal *journal.Journal
	control *home.Control
	fresh   bool // the run was created by this process, not taken over
}

// records makes the records of a new run, with this process as its controller, or
// returns those of the run that is taken over.
func (t Options) records(dir string, spec job.Spec) (r records, err error) {
	if t.taken != nil {
		r = records{run: t.taken.run, journal: t.taken.journal, control: t.taken.control}
	} else if r, err = newRecords(dir, spec); err != nil {
		return r, err
	}
	if t.Detached != nil {
		if err := t.Detached.UseLog(r.run); err != nil {
			return r, errors.Join(err, r.discard())
		}
	}
	return r, nil
}

// newRecords makes the records of a new run. Where that fails nothing is left of it.
func newRecords(dir string, spec job.Spec) (r records, err error) {
	for _, path := range []*string{&spec.Hostfile, &spec.Inventory} { // who takes over may be elsewhere
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return r, err
		}
	}
	text, err := jobfile.Marshal(spec)
	if err != nil {
		return r, err
	}
	r.fresh = true
	if r.run, r.journal, err = home.Create(dir, time.Now(), spec.Name, text, rand.Reader); err != nil {
		return r, err
	}
	if r.control, err = r.run.Control(home.Self()); err == nil {
		err = userenv.MarksOf(os.Environ(), spec).Write(r.run.Dir)
	}
	if err != nil {
		return r, errors.Join(err, r.discard())
	}
	return r, nil
}

// discard ends what records began, for a run that could not begin. What was taken over
// stays open: see taken.giveBack.
func (r records) discard() error {
	if !r.fresh {
		return nil
	}
	err := r.abandon()
	if r.control != nil {
		err = errors.Join(err, r.control.Close())
	}
	return err
}

// abandon closes the journal of a run that could not begin, and removes a new run:
// without an event in its journal nobody could go on with it, or tell it from a run
// that was lost.
func (r records) abandon() error {
	err := r.journal.Close()
	if r.fresh {
		err = errors.Join(err, os.RemoveAll(r.run.Dir))
	}
	return err
}
