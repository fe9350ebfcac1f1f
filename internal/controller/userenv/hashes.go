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
	// hashesName is a file in a run's directory with the Hashes of the environment in which the run was started.
	hashesName = "environment.json"
	// maxHashes limits the size of that file, in bytes.
	maxHashes = 64 << 20
	// maxNames limits how many variables of each kind Difference names.
	maxNames = 6
)

// Hashes shows changes of an environment without its values. It maps the name of each variable to one byte of a hash of
// the variable. One byte is too little to guess a value, even with the Hashes of many runs. It is enough to notice 255
// of 256 changes.
type Hashes map[string]byte

// HashesOf returns the Hashes of the variables in env that ranks inherit. It leaves out variables that the job sets
// itself, and secret variables.
func HashesOf(env []string, spec job.Spec) Hashes {
	m := Hashes{}
	for _, entry := range ForRanks(env) {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := spec.Env[name]; !set && !slices.Contains(spec.Secret, name) {
			m[name] = sha256.Sum256([]byte(entry))[0]
		}
	}
	return m
}

// Write writes m to a file in dir, the directory of a run. It does not wait for the disk, because a run can do without
// the file.
func (m Hashes) Write(dir string) error {
	data, err := exact.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, hashesName), data, 0o600)
}

// ReadHashes reads the Hashes that Write has written to dir. It returns nil if there are none.
func ReadHashes(dir string) (m Hashes, err error) {
	data, err := safefile.ReadFile(filepath.Join(dir, hashesName), maxHashes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = exact.Unmarshal(data, &m)
	}
	return m, err
}

// Difference describes the variables in which two environments differ. m has the Hashes of the earlier environment, and
// now those of the present one. Difference returns "" if m and now are equal.
func (m Hashes) Difference(now Hashes) string {
	var changed, missing, added []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if hash, ok := now[name]; !ok {
			missing = append(missing, name)
		} else if hash != m[name] {
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
