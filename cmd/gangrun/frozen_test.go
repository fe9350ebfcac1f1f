package main_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// frozen is a file that answers no read until done is closed.
type frozen struct {
	fs.Inode
	done chan struct{}
}

var _ interface {
	fs.NodeOpener
	fs.NodeReader
	fs.NodeGetattrer
} = (*frozen)(nil)

// Getattr implements fs.NodeGetattrer.
func (*frozen) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o444, 1<<20
	return 0
}

// Open implements fs.NodeOpener.
func (*frozen) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read implements fs.NodeReader. Even a signal does not end it, as in a network file system whose server is gone.
func (f *frozen) Read(context.Context, fs.FileHandle, []byte, int64) (fuse.ReadResult, syscall.Errno) {
	<-f.done
	return nil, syscall.EIO
}

// frozenFile returns a file on a FUSE mount. Until the test ends, the mount answers everything but reads.
func frozenFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := &frozen{done: make(chan struct{})}
	root := &fs.Inode{}
	noCache := time.Duration(0)
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, AllowOther: true, FsName: "gangrun-test"},
		EntryTimeout: &noCache, AttrTimeout: &noCache,
		OnAdd: func(ctx context.Context) {
			root.AddChild("data", root.NewPersistentInode(ctx, file, fs.StableAttr{Mode: syscall.S_IFREG}), true)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(file.done)
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "data")
}
