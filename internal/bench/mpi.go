package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

//go:embed testdata/barrier.c
var barrier []byte

// flavour is an MPI library, with the launcher that comes with it.
type flavour struct {
	name     string // the value of --mpi
	compiler string
	rival    string
	aim      string // how long gangrun may take, compared with the launcher
	note     string // a remark on the command line of the launcher
	// command returns the command line that starts n ranks of a program on that many hosts.
	command func(f *fakeHosts, hosts, n int, program ...string) []string
}

// flavours are the MPI libraries to measure.
var flavours = []flavour{
	{
		name: "mpich", compiler: "mpicc.mpich", rival: "hydra", command: hydra,
		aim: "at most 1.05 on 1 host and 0.8 on 4",
	}, {
		name: "openmpi", compiler: "mpicc.openmpi", rival: "mpirun", command: mpirun,
		aim: "at most 1.1",
		note: "mpirun is told what gangrun tells the mpirun it starts: no binding, interface lo, and to yield\n" +
			"  when there are more ranks than cores (gangrun: more on one host)",
	},
}

func hydra(f *fakeHosts, hosts, n int, program ...string) []string {
	argv := []string{"mpiexec.hydra"}
	if hosts > 1 {
		argv = append(argv, "-launcher", "ssh", "-launcher-exec", f.agent("plain"),
			"-hosts", strings.Join(f.names(hosts), ","), "-ppn", strconv.Itoa(each(n, hosts)))
	}
	return append(append(argv, "-n", strconv.Itoa(n)), program...)
}

func mpirun(f *fakeHosts, hosts, n int, program ...string) []string {
	argv := []string{"mpirun.openmpi"}
	if os.Geteuid() == 0 {
		argv = append(argv, "--allow-run-as-root")
	}
	// gangrun gives the same settings to the mpirun that it starts (see launcher/openmpi), with one difference. This
	// mpirun lets waiting ranks yield if the machine has fewer cores than ranks. gangrun does so if a host has fewer
	// cores than ranks.
	argv = append(argv, "--bind-to", "none", "--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo")
	if n > runtime.NumCPU() {
		argv = append(argv, "--mca", "mpi_yield_when_idle", "1")
	}
	if hosts > 1 {
		argv = append(argv, "--mca", "plm_rsh_agent", f.agent("openmpi"), "--host", f.slots(hosts, each(n, hosts)))
	} else {
		argv = append(argv, "--oversubscribe")
	}
	return append(append(argv, "-n", strconv.Itoa(n)), program...)
}

// each returns the largest number of ranks on one host if n ranks are spread over the hosts.
func each(n, hosts int) int { return (n + hosts - 1) / hosts }

// gangs says which gangs to measure: every number of ranks on every number of hosts, with each of the MPI libraries.
type gangs struct {
	mpis         []string
	ranks, hosts []int
}

// each calls f for every MPI library in g.mpis, with a program that is built for the library, and with fake hosts.
func (g gangs) each(ctx context.Context, f func(mpi flavour, program string, fake *fakeHosts) error) (err error) {
	dir, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fake, err := newFakeHosts(dir, slices.Max(g.hosts))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fake.close()) }()
	source := filepath.Join(dir, "barrier.c")
	if err := errors.Join(adopt(), os.WriteFile(source, barrier, 0o600)); err != nil {
		return err
	}
	for _, mpi := range flavours {
		if !slices.Contains(g.mpis, mpi.name) {
			continue
		}
		program := filepath.Join(dir, "barrier-"+mpi.name)
		if _, err := wholeJob(ctx, dir, mpi.compiler, "-O2", "-o", program, source); err != nil {
			return err
		}
		if err := f(mpi, program, fake); err != nil {
			return err
		}
	}
	return nil
}

// on returns the arguments with which "gangrun run" spreads n ranks over so many hosts, and the number of hosts that
// then have ranks.
func on(mpi flavour, hosts, n int) (flags []string, used int) {
	flags = []string{"--mpi", mpi.name}
	if hosts > 1 {
		flags = append(flags, "--loopback", strconv.Itoa(hosts))
	}
	return flags, min(hosts, n)
}

// mpiJobs measures whole jobs that call MPI_Init, MPI_Barrier and MPI_Finalize. It compares gangrun with the launcher
// of each MPI library, in alternating runs.
func mpiJobs(ctx context.Context, gangrun string, runs int, g gangs) error {
	return g.each(ctx, func(mpi flavour, program string, fake *fakeHosts) error {
		fmt.Printf("whole job of MPI_Init, MPI_Barrier, MPI_Finalize, %s: median and middle half of %d alternating runs;\n", mpi.name, runs)
		fmt.Printf("  ratio of the medians, gangrun to %s, and 90 %% of it by bootstrap; aim: %s\n", mpi.rival, mpi.aim)
		fmt.Printf("  %s\n", conditions())
		if mpi.note != "" {
			fmt.Printf("  %s\n", mpi.note)
		}
		for _, n := range g.ranks {
			for _, hosts := range g.hosts {
				flags, used := on(mpi, hosts, n)
				job := []string{program, strconv.Itoa(n)}
				theirs := mpi.command(fake, used, n, job...)
				ours := slices.Concat([]string{gangrun, "run", "--preflight", "off"}, flags, []string{"-n", strconv.Itoa(n), "--"}, job)
				fmt.Printf("  %s\n  %s\n", strings.Join(theirs, " "), strings.Join(ours, " "))
				var rivals, gangs sample
				for run := range runs + 1 {
					r, err := wholeJob(ctx, fake.dir, theirs...)
					if err != nil {
						return err
					}
					g, err := wholeJob(ctx, fake.dir, ours...)
					if err != nil {
						return err
					}
					if run > 0 { // the first run reads files that are not in memory yet
						rivals, gangs = append(rivals, r), append(gangs, g)
					}
				}
				fmt.Printf("  N=%-3d hosts=%-2d %s %v   gangrun %v   ratio %v\n", n, hosts, mpi.rival, rivals, gangs, ratioOf(gangs, rivals))
			}
		}
		return nil
	})
}

// mpiDeath measures the time from the SIGKILL of one rank to the end of all others, in gangs that wait in a barrier.
func mpiDeath(ctx context.Context, gangrun string, runs int, g gangs) error {
	return g.each(ctx, func(mpi flavour, program string, _ *fakeHosts) error {
		fmt.Printf("one rank of N killed (-9) in a barrier until every rank is reaped, %s: median and middle half of %d runs\n", mpi.name, runs)
		for _, n := range g.ranks {
			for _, hosts := range g.hosts {
				flags, _ := on(mpi, hosts, n)
				var took sample
				for range runs {
					d, err := oneDeath(ctx, gangrun, n, flags, program, strconv.Itoa(n), "hang")
					if err = errors.Join(err, settle(ctx)); err != nil {
						return err
					}
					took = append(took, d)
				}
				fmt.Printf("  N=%-3d hosts=%-2d %v\n", n, hosts, took)
			}
		}
		return nil
	})
}

// parseGangs parses the values of the flags, which are lists with commas.
func parseGangs(mpis, ranks, hosts string) (gangs, error) {
	g := gangs{mpis: strings.Split(mpis, ",")}
	for _, mpi := range g.mpis {
		if !slices.ContainsFunc(flavours, func(f flavour) bool { return f.name == mpi }) {
			return gangs{}, fmt.Errorf("there is no MPI %q to measure: take mpich, openmpi or both", mpi)
		}
	}
	for _, list := range []struct {
		from string
		min  int
		to   *[]int
	}{{ranks, 2, &g.ranks}, {hosts, 1, &g.hosts}} {
		for field := range strings.SplitSeq(list.from, ",") {
			n, err := strconv.Atoi(field)
			if err != nil || n < list.min || n > 250 {
				return gangs{}, fmt.Errorf("%q is no number from %d to 250", field, list.min)
			}
			*list.to = append(*list.to, n)
		}
	}
	return g, nil
}
