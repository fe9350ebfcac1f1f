// Package memory remembers which trials have passed. It identifies a trial by everything that influences its
// result.
package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Lifetime is how long a trial that passed is remembered. It is long enough for a user who
// starts the same job again and again. It is short enough for a changed library to be noticed
// soon.
const Lifetime = time.Hour

// Memory remembers trials that have passed. It has a file in Dir for each trial. Several runs may share Dir.
// Memory creates Dir when it first needs it. The zero Memory remembers nothing.
type Memory struct {
	Dir string
}

// Passed is what a Memory remembers about a trial.
type Passed struct {
	Time time.Time `json:"passed"`
	// Ranks is how many ranks the trial had. The trial does not show that a gang of fewer ranks
	// works.
	Ranks int `json:"ranks,omitempty"`
	// Wireup is set if the ranks of the trial used Open MPI, and the trial was not started
	// through Open MPI's mpirun.
	Wireup *job.Wireup `json:"wireup,omitempty"`
}

// entry is the content of a file of a Memory. The file's name is the Key and ".json".
type entry struct {
	Key string `json:"key"`
	Passed
}

// Recall returns the trial that has the given key, if it passed less than Lifetime before now. It ignores an
// entry that cannot be read.
func (m Memory) Recall(key string, now time.Time) (Passed, bool) {
	if m.Dir == "" || key == "" {
		return Passed{}, false
	}
	e, ok := m.read(m.file(key))
	age := now.Sub(e.Time)
	return e.Passed, ok && age >= 0 && age < Lifetime
}

// Remember stores a trial that has just passed, and removes trials that are older than
// Lifetime.
func (m Memory) Remember(key string, p Passed) error {
	if m.Dir == "" {
		return nil
	}
	now := p.Time
	data, err := json.Marshal(entry{key, p})
	if err != nil {
		return fmt.Errorf("cannot encode a trial: %w", err)
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	return errors.Join(m.sweep(now), atomicfile.WriteFile(m.file(key), append(data, '\n'), 0o600))
}

func (m Memory) file(key string) string { return filepath.Join(m.Dir, key+".json") }

// maxEntry is the maximum size of an entry, in bytes.
const maxEntry = 16 << 20

// read returns the entry in the file at path. ok is false if the entry is not valid.
func (m Memory) read(path string) (e entry, ok bool) {
	data, err := safefile.ReadFile(path, maxEntry)
	if err != nil || json.Unmarshal(data, &e) != nil || m.file(e.Key) != path {
		return entry{}, false
	}
	return e, true
}

// sweep removes entries that are corrupt or too old, and files of writers that have died. An entry
// may be a little newer than now if another run has written it in the meantime; sweep keeps it. If
// another run has already removed a file, that is not an error.
func (m Memory) sweep(now time.Time) error {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(m.Dir, f.Name())
		if filepath.Ext(path) == ".json" {
			if e, ok := m.read(path); ok && now.Sub(e.Time).Abs() < Lifetime {
				continue
			}
		} else if info, err := f.Info(); err != nil || now.Sub(info.ModTime()) < Lifetime {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
