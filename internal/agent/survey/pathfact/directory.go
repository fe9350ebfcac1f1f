package pathfact

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// TryDirectory tries in a checkpoint directory what a careful program does when it writes a checkpoint: it
// writes a file, syncs it, renames it and reads it. It creates the directory if it is missing, and leaves
// nothing else behind.
func TryDirectory(dir string) job.DirectoryFact {
	fact := job.DirectoryFact{}
	fact.Path = dir
	step := func(name string, err error) bool {
		if err != nil {
			fact.Step = name
			Fail(&fact.PathFact, err)
		}
		return err == nil
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if !step("create", os.MkdirAll(dir, 0o777)) {
			return fact
		}
		fact.Created = true
	} else if err == nil && !info.IsDir() {
		step("create", &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR})
		fact.Kind = job.ErrorKindOf
		return fact
	} else if err != nil && !step("create", err) {
		return fact
	}
	fact.Dir = true
	var vfs unix.Statfs_t
	if unix.Statfs(dir, &vfs) == nil {
		fact.Free = int64(vfs.Bavail) * vfs.Bsize
	}
	fact.Largest = largest(dir)
	content := bytes.Repeat([]byte("gangrun "), 512)
	file, err := os.CreateTemp(dir, ".gangrun-*.tmp")
	if !step("write", err) {
		return fact
	}
	name, renamed := file.Name(), file.Name()+"2"
	defer func() {
		_ = os.Remove(name)
		_ = os.Remove(renamed)
	}()
	_, err = file.Write(content)
	ok := step("write", err) && step("sync", file.Sync())
	if err := file.Close(); !ok || !step("write", err) {
		return fact
	}
	if !step("rename", os.Rename(name, renamed)) {
		return fact
	}
	back, err := os.ReadFile(renamed)
	if step("read", err) && !bytes.Equal(back, content) {
		step("read", errors.New("what was read back is not what had been written"))
	}
	return fact
}

// largestEntries limits how many entries largest looks at.
const largestEntries = 10_000

// largest returns the size in bytes of the largest entry of dir. The size of a directory is the size of all files below
// it.
func largest(dir string) (size int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	left := largestEntries
	for _, entry := range entries {
		sum := int64(0)
		_ = filepath.WalkDir(filepath.Join(dir, entry.Name()), func(_ string, d fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					sum += info.Size()
				}
			}
			return nil
		})
		size = max(size, sum)
	}
	return size
}
