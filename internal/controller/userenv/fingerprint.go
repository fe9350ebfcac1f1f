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
	// fingerprintName is a file in a run's directory with the fingerprint of the environment in which the run was
	// started.
	fingerprintName = "environment.json"
	// maxFingerprint limits the size of that file, in bytes.
	maxFingerprint = 64 << 20
	// maxNames limits how many variables of each kind Difference names.
	maxNames = 6
)

// Fingerprint detects changes of an environment without recording its values. It has one byte of
// the hash of each variable. One byte is too little to guess a value, even with the fingerprints of
// many runs. It is enough to notice 255 of 256 changes.
type Fingerprint map[string]byte

// FingerprintOf returns the fingerprint of the variables in env that ranks inherit. It leaves out variables that the
// job sets itself, and secret variables.
func FingerprintOf(env []string, spec job.Spec) Fingerprint {
	m := Fingerprint{}
	for _, entry := range ForRanks(env) {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := spec.Env[name]; !set && !slices.Contains(spec.Secret, name) {
			m[name] = sha256.Sum256([]byte(entry))[0]
		}
	}
	return m
}

// Write writes the fingerprint to a run's directory. It does not wait for the disk, because
// a run can do without the file.
func (m Fingerprint) Write(dir string) error {
	data, err := exact.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fingerprintName), data, 0o600)
}

// ReadFingerprint reads the fingerprint from a run's directory. It returns nil if there is
// none.
func ReadFingerprint(dir string) (m Fingerprint, err error) {
	data, err := safefile.ReadFile(filepath.Join(dir, fingerprintName), maxFingerprint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = exact.Unmarshal(data, &m)
	}
	return m, err
}

// Difference describes the variables in which two environments differ. m is the fingerprint of the earlier environment,
// and now that of the present one. Difference returns "" if the environments do not differ.
func (m Fingerprint) Difference(now Fingerprint) string {
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
