package userenv

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/text"
)

const (
	// marksName is the file of a run's directory by which a later controller sees whether
	// its environment is the one in which the run was started.
	marksName = "environment.json"
	// maxMarks is more bytes than that file ever has.
	maxMarks = 64 << 20
	// maxNames is how many variables Difference names of each kind.
	maxNames = 6
)

// Marks has one byte of the hash of each variable of an environment. That is too little to
// guess a value from the files of however many runs, and enough to notice 255 of 256
// changed values.
type Marks map[string]byte

// MarksOf returns the marks of what ranks get from an environment and the job does not set
// itself. Secrets have none.
func MarksOf(env []string, spec job.Spec) Marks {
	m := Marks{}
	for _, entry := range ForRanks(env) {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := spec.Env[name]; !set && !slices.Contains(spec.Secret, name) {
			m[name] = sha256.Sum256([]byte(entry))[0]
		}
	}
	return m
}

// Write writes the marks to a run's directory. Nothing depends on them, so it does not wait
// for the disk.
func (m Marks) Write(dir string) error {
	data, err := exact.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marksName), data, 0o600)
}

// ReadMarks returns the marks of a run's directory, or nil where it has none.
func ReadMarks(dir string) (m Marks, err error) {
	data, err := safefile.ReadFile(filepath.Join(dir, marksName), maxMarks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = exact.Unmarshal(data, &m)
	}
	return m, err
}

// Difference says in what the environment now differs from that of m. It returns "" where
// they are the same.
func (m Marks) Difference(now Marks) string {
	var changed, missing, added []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if mark, ok := now[name]; !ok {
			missing = append(missing, name)
		} else if mark != m[name] {
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := m[name]; !ok {
			added = append(added, name)
		}
	}
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"another value of ", changed}, {"without ", missing}, {"with ", added}} {
		if len(part.names) > 0 {
			parts = append(parts, part.what+text.Some(part.names, maxNames))
		}
	}
	return strings.Join(parts, "; ")
}
