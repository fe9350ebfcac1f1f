// Package atomicfile replaces a file completely or not at all. A reader of the path sees the old content or the new
// content, even after a power loss (except with Replace).
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile replaces the content of the file at path by data. The file gets exactly the permissions perm, without
// regard to the umask. See Write.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return Write(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Write replaces the content of the file at path by what fill writes. fill writes to a temporary
// file in the same directory, named ".NAME.*.tmp". Write forces that file to the disk, renames it
// to path, and forces the directory to the disk. If anything before the rename fails, path is
// unchanged and the temporary file is removed. A symbolic link at path is replaced, not followed.
// fill is called once. If it returns an error, Write returns that error.
func Write(path string, perm fs.FileMode, fill func(io.Writer) error) error {
	if err := replace(path, perm, fill, (*os.File).Sync); err != nil {
		return err
	}
	dir, _ := split(path)
	if err := SyncDir(dir); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// Replace is like WriteFile, for a file that need not survive a power loss. It is cheap, because it forces nothing to
// the disk.
func Replace(path string, data []byte, perm fs.FileMode) error {
	return replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, func(*os.File) error { return nil })
}

func split(path string) (dir, base string) {
	if dir, base = filepath.Split(path); dir == "" {
		dir = "."
	}
	return dir, base
}

// replace replaces the file at path by what fill writes. It calls settle after fill, before it renames the file.
func replace(path string, perm fs.FileMode, fill func(io.Writer) error, settle func(*os.File) error) (err error) {
	dir, base := split(path)
	// A name may have 255 bytes, and the random part needs some of them.
	temp, err := os.CreateTemp(dir, "."+base[:min(len(base), 200)]+".*.tmp")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	renamed := false
	defer func() {
		if !renamed { // also if fill panics
			temp.Close() // a second Close only fails
			os.Remove(temp.Name())
		}
		if err != nil {
			err = fmt.Errorf("cannot write %q: %w", path, err)
		}
	}()
	if err := fill(temp); err != nil {
		return err
	}
	if err := temp.Chmod(perm); err != nil {
		return err
	}
	if err := settle(temp); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	renamed = true
	return nil
}

// SyncDir forces the names in dir to the disk, so that a file that was created or renamed in it is
// there after a power loss. On a file system that cannot do this for a directory, SyncDir does
// nothing and returns nil.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
