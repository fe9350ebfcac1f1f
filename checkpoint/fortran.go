package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// formatRecords is a file of Fortran's sequential unformatted records. Such a file is only ever a part of a
// checkpoint.
const formatRecords = "fortran"

// checkBeside checks a file beside a checkpoint, if the file exists.
func checkBeside(ctx context.Context, path string, check func(*file) error) error {
	f, done, err := openFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer done()
	return flaw.Within(filepath.Base(path), check(f))
}
