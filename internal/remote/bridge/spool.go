package bridge

import (
	"io/fs"
	"os"
	"path/filepath"
)

// SpoolName is the name of the spool. The spool is a directory in an agent's directory, and has the output of the
// agent's ranks. It has a directory for each gang. The directory of a gang has a file for each stream. A complete file
// has the mode Whole.
const SpoolName = "logs"

// Whole is the file mode of a complete file in the spool.
const Whole os.FileMode = 0o444

// Spooled reports whether the spool in dir has output of ranks. dir is the directory of an agent.
func Spooled(dir string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(dir, SpoolName), func(_ string, d fs.DirEntry, err error) error { // a file that cannot be read does not count
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
