package bridge

import (
	"io/fs"
	"os"
	"path/filepath"
)

// SpoolName is the directory, in that of an agent, with the output of its ranks. It has a
// directory for each gang, with a file for each stream. A file that is complete has the mode
// Whole.
const SpoolName = "logs"

// Whole is the mode of a file of the spool that is complete.
const Whole os.FileMode = 0o444

// Spooled reports whether the directory of an agent holds output of ranks.
func Spooled(dir string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(dir, SpoolName), func(_ string, d fs.DirEntry, err error) error { // a file that cannot be read counts as none
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
