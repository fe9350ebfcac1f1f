package checkpoint

import (
	"context"
	"encoding/binary"

	"github.com/gangrun/gangrun/checkpoint/blob"
)

var le = binary.LittleEndian

type (
	file = blob.File
	pool = blob.Pool
)

// openFile opens a regular file without collecting findings. The caller must call done.
func openFile(ctx context.Context, path string) (f *file, done func(), err error) {
	return blob.Open(ctx, path, nil)
}
