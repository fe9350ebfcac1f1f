package main

import (
	"fmt"
	"os"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/limits"
)

// usable checks that this machine gives gangrun what it cannot do without.
func usable() error {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("/proc is not there, and gangrun starts its agents through it: %w", err),
			Hint: "as root: mount -t proc proc /proc; in a container, start it so that it has one"}
	}
	if hint, err := limits.CheckFiles(); err != nil {
		return &failure.Error{Code: failure.CodeInternal, Err: err, Hint: hint}
	}
	return nil
}

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
