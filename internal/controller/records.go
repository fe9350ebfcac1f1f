package controller

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/journal"
)

// records has the files of a run that this process controls.
type records struct {
	run     home.Run
	journal *journal.Journal
	control *home.Control
	fresh   bool // this process has created the run, and has not taken it over
	// saves is the lock on the directory of the checkpoints; nil if there is none. sharing is the ID of another run that
	// has this lock.
	saves   *home.DirLock
	sharing string
}

// records returns the records of the session's run. If the run is taken over, it returns the records of that run.
// Otherwise, it makes the records of a new run, with this process as the controller.
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
	if spec.CheckpointDir != "" && !t.PreflightOnly {
		r.saves, r.sharing, _ = home.LockDir(dir, spec.CheckpointDir, r.run.ID) // an error costs only a warning
	}
	return r, nil
}

// findings returns a warning if another run writes checkpoints to the same directory.
func (r records) findings(spec job.Spec) []job.Finding {
	if r.sharing == "" {
		return nil
	}
	return []job.Finding{{
		Check: "checkpoint-dir-in-use", Severity: job.SeverityWarning,
		Text: fmt.Sprintf("run %s, which has not ended, has the same directory of checkpoints, %q: each run may resume from the checkpoints of the other, or overwrite them", r.sharing, spec.CheckpointDir),
		Hint: "give each run a directory of its own (--checkpoint-dir), or end the other run: gangrun stop " + r.sharing,
	}}
}

// newRecords makes the records of a new run. If that fails, it leaves nothing behind.
func newRecords(dir string, spec job.Spec) (r records, err error) {
	for _, path := range []*string{&spec.Hostfile, &spec.Inventory} { // a later controller may have another working directory
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
		err = userenv.HashesOf(os.Environ(), spec).Write(r.run.Dir)
	}
	if err != nil {
		return r, errors.Join(err, r.discard())
	}
	return r, nil
}

// discard removes the records of a run that could not begin. The records of a run that was taken over stay open: see
// Taken.giveBack.
func (r records) discard() error {
	if !r.fresh {
		return nil
	}
	err := r.abandon()
	if r.control != nil {
		err = errors.Join(err, r.control.Close())
	}
	return errors.Join(err, r.saves.Close())
}

// abandon closes the journal of a run that could not begin. It also removes a new run, because a run without events in
// its journal could not be continued, and would look lost.
func (r records) abandon() error {
	err := r.journal.Close()
	if r.fresh {
		err = errors.Join(err, os.RemoveAll(r.run.Dir))
	}
	return err
}
