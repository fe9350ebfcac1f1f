package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fakeHosts makes this machine look like several hosts to another launcher. The first host is this machine itself. The
// others are loopback addresses, which need no name look-up. In place of ssh, the launcher gets a script that runs the
// command on this machine at once.
type fakeHosts struct {
	dir string // has the scripts, and a directory of temporary files for each host
	shm string // has a directory for the shared memory of each host
}

// plainAgent is a script in place of ssh. It drops the host name from its arguments, and the -x that hydra puts before
// the host name.
const plainAgent = `#!/bin/sh
[ "$1" = -x ] && shift
shift
exec sh -c "$*"
`

// openMPIAgent is like plainAgent, but also gives Open MPI's daemon its own host name, /tmp and /dev/shm. Without
// these, ranks of two such hosts would use the same segment of shared memory, and fail.
const openMPIAgent = `#!/bin/sh
host=$1
shift
export PMIX_HOSTNAME=$host OMPI_MCA_orte_tmpdir_base=%s/$host OMPI_MCA_btl_vader_backing_directory=%s/$host
exec sh -c "$*"
`

// newFakeHosts writes the scripts into dir. For each host but the first, it makes a directory in dir and one in
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

// close removes the directories in /dev/shm.
func (f *fakeHosts) close() error { return os.RemoveAll(f.shm) }

func (f *fakeHosts) agent(name string) string { return filepath.Join(f.dir, name+"-agent") }

// names returns the names of so many hosts. There is at least one.
func (f *fakeHosts) names(hosts int) []string {
	names := []string{"localhost"}
	for i := 2; i <= hosts; i++ {
		names = append(names, fmt.Sprintf("127.0.1.%d", i))
	}
	return names
}

// slots lists the hosts with the same number of slots each, in the form that mpirun reads.
func (f *fakeHosts) slots(hosts, each int) string {
	var names []string
	for _, name := range f.names(hosts) {
		names = append(names, fmt.Sprintf("%s:%d", name, each))
	}
	return strings.Join(names, ",")
}
