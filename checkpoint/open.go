package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFile opens a regular file to be verified. Whoever gets it calls done.
func openFile(ctx context.Context, path string) (f *file, done func(), err error) {
	// So that a pipe in place of a file does not block.
	h, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is no regular file")}
	}
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return &file{ctx, h, info.Size()}, func() { h.Close() }, nil
}

// pool keeps the files of one checkpoint open that are read piece by piece.
type pool struct {
	ctx  context.Context
	open map[string]opened
}

type opened struct {
	*file
	done func()
}

// maxOpen bounds the files that a pool keeps open.
const maxOpen = 64

func newPool(ctx context.Context) *pool { return &pool{ctx, map[string]opened{}} }

// get returns the file at path, which is good until the next call.
func (p *pool) get(path string) (*file, error) {
	if o, ok := p.open[path]; ok {
		return o.file, nil
	}
	if len(p.open) >= maxOpen {
		p.close()
	}
	f, done, err := openFile(p.ctx, path)
	if err != nil {
		return nil, err
	}
	p.open[path] = opened{f, done}
	return f, nil
}

func (p *pool) close() {
	for path, o := range p.open {
		o.done()
		delete(p.open, path)
	}
}
