package main

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/journal"
)

// records makes the records of a new run, with this process as its controller, or
// returns those of the run that is taken over.
func (t terms) records(dir string, spec job.Spec) (run home.Run, j *journal.Journal, lock *os.File, err error) {
	if t.taken != nil {
		run, j, lock = t.taken.run, t.taken.journal, t.taken.lock
	} else {
		for _, path := range []*string{&spec.Hostfile, &spec.Inventory} { // who takes over may be elsewhere
			if *path == "" {
				continue
			}
			if *path, err = filepath.Abs(*path); err != nil {
				return run, nil, nil, err
			}
		}
		text, err := jobfile.Marshal(spec)
		if err != nil {
			return run, nil, nil, err
		}
		if run, j, err = home.Create(dir, time.Now(), spec.Name, text, rand.Reader); err != nil {
			return run, nil, nil, err
		}
		if lock, err = run.Control(home.Self()); err != nil {
			return run, nil, nil, errors.Join(err, j.Close())
		}
		if err = marksOf(os.Environ(), spec).write(run); err != nil {
			return run, nil, nil, errors.Join(err, j.Close(), lock.Close())
		}
	}
	if t.detached != nil {
		if err := t.detached.settle(run); err != nil {
			return run, nil, nil, errors.Join(err, j.Close(), lock.Close())
		}
	}
	return run, j, lock, nil
}
