package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fakeHosts makes this machine look like several to a rival launcher. The first host is where
// it is started, as usual; the others are loopback addresses, which need no look-up. In place
// of ssh it gets a script that runs the command here immediately.
type fakeHosts struct {
	dir string // the scripts, and each host's directory of temporary files
	shm string // each host's directory of shared memory
}

// plainAgent drops the host's name, and the -x that hydra puts before it.
const plainAgent = `#!/bin/sh
[ "$1" = -x ] && shift
shift
exec sh -c "$*"
`

// openMPIAgent also gives Open MPI's daemon a host name, a /tmp and a /dev/shm of its own.
// Without these, ranks of two such hosts would use the same segment of shared memory, and
// fail.
const openMPIAgent = `#!/bin/sh
host=$1
shift
export PMIX_HOSTNAME=$host OMPI_MCA_orte_tmpdir_base=%s/$host OMPI_MCA_btl_vader_backing_directory=%s/$host
exec sh -c "$*"
`

// newFakeHosts writes the scripts, and the directories of a number of hosts, into dir and
// /dev/shm.
func newFakeHosts(dir string, hosts int) (*fakeHosts, error) {
	shm, err := os.MkdirTemp("/dev/shm", "gangrun-bench-")
	if err != nil {
		return nil, err
	}
	f := &fakeHosts{dir: dir, shm: shm}
	err = errors.Join(
		os.WriteFile(f.agent("plain"), []byte(plainAgent), 0o700),
		os.WriteFile(f.agent("openmpi"), fmt.Appendf(nil, openMPIAgent, dir, shm), 0o700),
	)
	for _, host := range f.names(hosts)[1:] {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, host), 0o700), os.Mkdir(filepath.Join(shm, host), 0o700))
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// close removes what is not in dir.
func (f *fakeHosts) close() error { return os.RemoveAll(f.shm) }

func (f *fakeHosts) agent(name string) string { return filepath.Join(f.dir, name+"-agent") }

// names returns the names of that many hosts, at least one.
func (f *fakeHosts) names(hosts int) []string {
	names := []string{"localhost"}
	for i := 2; i <= hosts; i++ {
		names = append(names, fmt.Sprintf("127.0.1.%d", i))
	}
	return names
}

// slots names the hosts with as many slots each, as mpirun reads them.
func (f *fakeHosts) slots(hosts, each int) string {
	var names []string
	for _, name := range f.names(hosts) {
		names = append(names, fmt.Sprintf("%s:%d", name, each))
	}
	return strings.Join(names, ",")
}
