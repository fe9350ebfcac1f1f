package blob

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file to be verified. Whoever gets it calls done.
func Open(ctx context.Context, path string, seen *Seen) (f *File, done func(), err error) {
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
	return &File{Ctx: ctx, R: h, Size: info.Size(), Seen: seen}, func() { h.Close() }, nil
}

// Pool keeps the files of one checkpoint open that are read piece by piece.
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

// NewPool returns a pool without files.
func NewPool(ctx context.Context, seen *Seen) *Pool { return &Pool{ctx, seen, map[string]opened{}} }

// Get returns the file at path, which is good until the next call.
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

// Paths returns the files that are open.
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
