package main

import (
	"os"

	"github.com/gangrun/gangrun/internal/failure"
)

// workingDir returns the working directory. Where there is none any more, as after rm -r,
// that is an error only if something is to be found from it; flag is what names another.
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
