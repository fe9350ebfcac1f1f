package controller

import (
	"fmt"
	"os"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/limits"
	"github.com/gangrun/gangrun/topology/lease"
)

// usable returns an error if this machine lacks what gangrun needs.
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

// HomeDir returns the directory that holds all runs; see home.Dir.
func HomeDir() (string, error) {
	dir, err := home.Dir(os.Getenv)
	if err != nil {
		return "", &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return dir, nil
}

// checkLeaseDir checks the directory for leases that the user has named. It returns an error if ranks may need GPUs,
// and the directory cannot have their leases.
func checkLeaseDir(spec job.Spec) error {
	dir := os.Getenv(lease.Env)
	if dir == "" || spec.GPUs == 0 {
		return nil
	}
	_, err := lease.Open(dir, "")
	return LeaseDirError(err)
}

// leaseDirHint says what the user should do if a directory cannot have leases.
const leaseDirHint = "set " + lease.Env + " to a local directory of mode 1777, the same for all users"

// LeaseDirError adds a hint to an error about the directory of leases. The hint says how to fix the error.
// LeaseDirError returns nil if err is nil.
func LeaseDirError(err error) error {
	if err == nil {
		return nil
	}
	return &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("%s: %w", lease.Env, err), Hint: leaseDirHint}
}
