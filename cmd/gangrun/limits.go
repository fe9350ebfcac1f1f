package main

import (
	"os"

	"github.com/gangrun/gangrun/internal/failure"
)

// workingDir returns the working directory. If it no longer exists, for instance after rm -r, that
// is an error only if the directory is needed. flag is the flag that names another directory.
func workingDir(needed bool, flag string) (string, error) {
	dir, err := os.Getwd()
	switch {
	case err == nil:
		return dir, nil
	case !needed:
		return "/", nil
	}
	gone, _ := os.Readlink("/proc/self/cwd") // the kernel writes "(deleted)" behind it
	return "", failure.Usage("go to one that is there: cd DIR; or give absolute paths, and "+flag+" DIR", "the working directory %q cannot be used: %w", gone, err)
}
