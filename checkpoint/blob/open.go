package blob

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file. The caller must call done to close it.
func Open(ctx context.Context, path string, seen *Seen) (f *File, done func(), err error) {
	// With O_NONBLOCK, open does not wait if the file is a FIFO.
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
	return &File{Ctx: ctx, R: h, Size: info.Size(), Seen: seen}, func() { h.Close() }, nil
}

// Pool keeps files of one checkpoint open, so that pieces of them can be read in any order.
type Pool struct {
	Ctx  context.Context
	Seen *Seen
	open map[string]opened
}

type opened struct {
	*File
	done func()
}

// maxOpen bounds the files that a pool keeps open.
const maxOpen = 64

// NewPool returns a Pool without files.
func NewPool(ctx context.Context, seen *Seen) *Pool { return &Pool{ctx, seen, map[string]opened{}} }

// Get returns the file at path. The File is valid until the next call of Get.
func (p *Pool) Get(path string) (*File, error) {
	if o, ok := p.open[path]; ok {
		return o.File, nil
	}
	if len(p.open) >= maxOpen {
		p.Close()
	}
	f, done, err := Open(p.Ctx, path, p.Seen)
	if err != nil {
		return nil, err
	}
	p.open[path] = opened{f, done}
	return f, nil
}

// Paths returns the paths of the files that are open.
func (p *Pool) Paths() (all []string) {
	for path := range p.open {
		all = append(all, path)
	}
	return all
}

// Close closes all files.
func (p *Pool) Close() {
	for path, o := range p.open {
		o.done()
		delete(p.open, path)
	}
}
