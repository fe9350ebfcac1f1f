package bridge

import (
	"io/fs"
	"os"
	"path/filepath"
)

// SpoolName is the name of the spool, a directory in the directory of an agent that has the output of the
// agent's ranks. The spool has a directory for each gang, which has a file for each stream. A complete file has
// the mode Whole.
const SpoolName = "logs"

// Whole is the file mode of a complete file in the spool.
const Whole os.FileMode = 0o444

// Spooled reports whether dir, the directory of an agent, has output of ranks.
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
