package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/thishost"
)

// simulated returns the first hosts of a job's inventory, which are simulated on this machine. The hosts have the GPUs
// that the inventory gives them.
func simulated(spec job.Spec) ([]job.Host, error) {
	list, err := hostlist.Source{Inventory: spec.Inventory}.Read()
	if err != nil {
		return nil, err
	}
	if len(list.Hosts) < spec.Loopback {
		return nil, failure.Usage(fmt.Sprintf("write --loopback %d, or name more hosts in the inventory", len(list.Hosts)),
			"the inventory %s has %s, and loopback asks for %d", spec.Inventory, text.Count(len(list.Hosts), "host"), spec.Loopback)
	}
	hosts := list.Hosts[:spec.Loopback]
	for i := range hosts {
		hosts[i].Address = "127.0.0.1"
	}
	return hosts, nil
}

// Wanted returns the hosts of a job. These are the hosts in list, if there are any. Otherwise, they are simulated hosts
// if the job asks for them, or else this machine.
func Wanted(spec job.Spec, list []job.Host) ([]job.Host, error) {
	switch {
	case len(list) > 0:
		hosts := slices.Clone(list)
		for i := range hosts { // the agents of the hosts report these
			hosts[i].Devices, hosts[i].Links, hosts[i].NICs = nil, nil, nil
		}
		return hosts, nil
	case spec.Loopback == 0:
		return []job.Host{{Name: thishost.Name(), Address: "127.0.0.1"}}, nil
	case spec.Inventory != "":
		return simulated(spec)
	}
	var hosts []job.Host
	for _, name := range hostlist.Simulated(spec.Loopback) {
		hosts = append(hosts, job.Host{Name: name, Address: "127.0.0.1"})
	}
	return hosts, nil
}

// TempDir returns this user's directory for the ranks' TMPDIRs, and creates it if it is
// missing. It returns an error if the directory belongs to another user, or others can
// write to it.
func TempDir() (string, error) {
	dir := filepath.Join(os.TempDir(), "gangrun-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("make a directory for the ranks' TMPDIR: %w", err), Hint: "set TMPDIR to a directory in which you may write"}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return "", &failure.Error{Code: failure.CodeInternal, Err: fmt.Errorf("%q is not a directory that only this user can write to (mode %s)", dir, info.Mode()), Hint: "remove it, or set TMPDIR to another directory"}
	}
	return dir, nil
}
