package main

import (
	"os"

	"github.com/gangrun/gangrun/internal/failure"
)

// workingDir returns the working directory. If that directory no longer exists, for instance after rm -r, workingDir
// returns an error, but only if needed is true. flag is the flag with which the user can name another directory.
func workingDir(needed bool, flag string) (string, error) {
	dir, err := os.Getwd()
	switch {
	case err == nil:
		return dir, nil
	case !needed:
		return "/", nil
	}
	gone, _ := os.Readlink("/proc/self/cwd") // the kernel adds " (deleted)" to the path
	return "", failure.Usage("go to one that is there: cd DIR; or give absolute paths, and "+flag+" DIR", "the working directory %q cannot be used: %w", gone, err)
}
