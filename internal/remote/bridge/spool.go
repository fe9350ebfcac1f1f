package bridge

import (
	"io/fs"
	"os"
	"path/filepath"
)

// SpoolName is the directory, in an agent's own, of what its ranks print: a directory
// for each gang, and in that a file for each stream, which nobody may write to (Whole)
// once nothing is missing at its end.
const SpoolName = "logs"

// Whole is the mode of a file of the spool that is complete.
const Whole os.FileMode = 0o444

// Spooled reports whether the spool of an agent's directory holds anything that ranks
// have printed.
func Spooled(dir string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(dir, SpoolName), func(_ string, d fs.DirEntry, err error) error { // what cannot be read is none
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() > 0 {
				found = true
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}
