package growing

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/safefile"
)

// maxKept limits how many files a Reader keeps open. It opens other files whenever they have grown.
const maxKept = 512

// Reader reads files that grow. Only one goroutine may use it.
type Reader struct {
	buffer []byte
	kept   int
}

// File is a file that a Reader reads.
type File struct {
	path   string
	offset int64    // the file was read up to this offset
	file   *os.File // nil if the file is not kept open
	failed error    // why the file is no longer read
}

// NewFile returns the file at path, which need not exist yet, to be read from offset on.
func NewFile(path string, offset int64) *File { return &File{path: path, offset: offset} }

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// More calls emit for every piece that was added to f since the last call, until it has read all or
// ctx ends. A piece is valid until emit returns. More treats a file that does not exist as empty.
// If fresh is true, More asks the server of a network file system for the current size of the file,
// and checks whether f.Path() now names another file. After an error, later calls of More for f do
// nothing.
func (r *Reader) More(ctx context.Context, f *File, fresh bool, emit func(piece []byte)) error {
	if f.failed != nil {
		return nil
	}
	err := r.more(ctx, f, fresh, emit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		f.failed = err
		r.Close(f)
	}
	return err
}

func (r *Reader) more(ctx context.Context, f *File, fresh bool, emit func([]byte)) error {
	if f.file != nil && fresh && removed(f.file) {
		r.Close(f)
		f.offset = 0
	}
	if f.file == nil {
		if info, err := os.Stat(f.path); err != nil || info.Mode().IsRegular() && info.Size() <= f.offset {
			return err
		}
		file, err := safefile.Open(f.path)
		if err != nil {
			return err
		}
		f.file = file
		if r.kept++; r.kept > maxKept {
			defer r.Close(f)
		}
	}
	if r.buffer == nil {
		r.buffer = make([]byte, 64<<10)
	}
	for ctx.Err() == nil {
		n, err := f.file.ReadAt(r.buffer, f.offset)
		f.offset += int64(n)
		if n > 0 {
			emit(r.buffer[:n])
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes f if the Reader keeps it open. More may open it again.
func (r *Reader) Close(f *File) {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
		r.kept--
	}
}

// removed reports whether a file has been removed. It makes a network file system ask its
// server, so that the next read returns the present content.
func removed(file *os.File) bool {
	var now unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_NLINK|unix.STATX_SIZE, &now)
	if err == nil {
		return now.Nlink == 0
	}
	if errors.Is(err, unix.ESTALE) {
		return true
	}
	info, err := file.Stat() // for kernels before 4.11
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
