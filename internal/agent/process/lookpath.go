package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/environ"
)

// LookPath finds a program as execvp(3) does in the given directory and environment.
func LookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, Executable(path)
	}
	denied := ""
	for _, d := range filepath.SplitList(environ.Lookup(env, "PATH")) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, name)
		switch err := Executable(path); {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission):
			denied = path
		}
	}
	if denied != "" {
		return denied, &fs.PathError{Op: "execute", Path: denied, Err: fs.ErrPermission}
	}
	return "", fmt.Errorf("%q is not in PATH: %w", name, fs.ErrNotExist)
}

// Executable returns nil if the file at path can be executed, and otherwise the reason why it cannot.
func Executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return &fs.PathError{Op: "execute", Path: path, Err: unix.EISDIR}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "execute", Path: path, Err: unix.EACCES} // execve(2) returns this error for a FIFO
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

// Enterable returns nil if a process can start in the directory dir, and otherwise the reason why it cannot.
func Enterable(dir string) error {
	if _, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return unix.Access(dir, unix.X_OK)
}
