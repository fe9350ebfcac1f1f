package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bedHosts is the number of simulated hosts. sshHosts are the numbers of hosts on which jobs are measured. Each host
// has ranksEach ranks.
const (
	bedHosts  = 16
	ranksEach = 2
)

var sshHosts = []int{4, bedHosts}

// bedNetwork is the network of the simulated hosts.
const bedNetwork = "10.77.0.0/24"

// insideName is the first argument of this program if it runs on the controller of simulated hosts.
const insideName = "inside"

// inBed runs this program again on the controller of simulated hosts, to take the measurement named what. flags are
// additional flags for the program that simulates the hosts. If the machine cannot simulate hosts, inBed says so and
// skips the measurement.
func inBed(ctx context.Context, bed, gangrun, what string, runs int, flags ...string) error {
	if os.Geteuid() != 0 {
		fmt.Printf("%s: left out: only root can simulate hosts\n", what)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags = append([]string{"-n", strconv.Itoa(bedHosts)}, flags...)
	cmd := exec.CommandContext(ctx, bed, append(flags, "-c", `exec "$BENCH_SELF" `+insideName+` "$BENCH_WHAT" "$BENCH_GANGRUN" "$BENCH_RUNS"`)...)
	cmd.Env = append(os.Environ(), "BENCH_SELF="+self, "BENCH_WHAT="+what, "BENCH_GANGRUN="+gangrun, "BENCH_RUNS="+strconv.Itoa(runs))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = parted
	return cmd.Run()
}

// inside takes a measurement on simulated hosts, in a directory that all of them share.
func inside(ctx context.Context, args []string) (err error) {
	if len(args) != 3 {
		return errors.New("this command is for bench's own use")
	}
	runs, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if args[0] == "slurm" {
		return inSlurm(ctx, args[1], runs)
	}
	shared := filepath.Join(os.Getenv("HOME"), "../../shared") // the place at which internal/testhosts puts it
	dir, err := os.MkdirTemp(shared, "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := errors.Join(os.Chdir(dir), adopt()); err != nil {
		return err
	}
	switch args[0] {
	case "ssh":
		return overSSH(ctx, args[1], dir, runs)
	case "containers":
		return inContainers(ctx, args[1], dir, runs)
	case "scale":
		return scaleOverSSH(ctx, args[1], runs)
	}
	return fmt.Errorf("there is nothing called %q to measure on hosts", args[0])
}

// bedNames returns the names h1 to hN.
func bedNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, "h"+strconv.Itoa(i+1))
	}
	return names
}

// contender is one way to start a job.
type contender struct {
	name string
	argv []string
	cold bool // no host has gangrun's program when the job starts
}

// sshJob is a program that runs on a number of hosts, with the contenders that start it.
type sshJob struct {
	program string
	hosts   int
	by      []contender
}

// sshJobs returns the jobs on a number of hosts. The first contender of each job is gangrun's warm start.
func sshJobs(gangrun string, hosts int, barriers map[string]string) []sshJob {
	n, each := strconv.Itoa(ranksEach*hosts), strconv.Itoa(ranksEach)
	list := strings.Join(bedNames(hosts), ",")
	ours := func(flags []string, program ...string) []contender {
		argv := slices.Concat([]string{gangrun, "run", "--preflight", "off"}, flags, []string{"--hosts", list, "-n", n, "--"}, program)
		return []contender{{"gangrun", argv, false}, {"gangrun, cold", argv, true}}
	}
	mpirun := func(program ...string) contender {
		argv := []string{"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--mca", "plm_rsh_agent", "ssh",
			"--mca", "oob_tcp_if_include", bedNetwork, "--mca", "btl_tcp_if_include", bedNetwork, "--mca", "mpi_yield_when_idle", "1",
			"--host", strings.ReplaceAll(list, ",", ":"+each+",") + ":" + each, "-n", n}
		return contender{"mpirun", append(argv, program...), false}
	}
	hydra := func(program ...string) contender {
		argv := []string{"mpiexec.hydra", "-launcher", "ssh", "-hosts", list, "-ppn", each, "-n", n}
		return contender{"hydra", append(argv, program...), false}
	}
	pdsh := contender{plainShell, []string{"pdsh", "-S", "-R", "ssh", "-f", strconv.Itoa(hosts), "-w", list, strings.Repeat("true & ", ranksEach) + "wait"}, false}
	yield := []string{"--mpi", "openmpi", "-e", "OMPI_MCA_mpi_yield_when_idle=1"}
	return []sshJob{
		{"true", hosts, append(ours(nil, "true"), mpirun("true"), hydra("true"), pdsh)},
		{"barrier, openmpi", hosts, append(ours(yield, barriers["openmpi"], n), mpirun(barriers["openmpi"], n))},
		{"barrier, mpich", hosts, append(ours([]string{"--mpi", "mpich"}, barriers["mpich"], n), hydra(barriers["mpich"], n))},
	}
}

// plainShell is the contender that starts commands over SSH and does nothing else.
const plainShell = "pdsh"

// coldRatio returns the ratio of gangrun's cold start to plainShell. It returns false if one of the two has no times.
func (j sshJob) coldRatio(took []sample) (ratio, bool) {
	cold := slices.IndexFunc(j.by, func(c contender) bool { return c.cold })
	shell := slices.IndexFunc(j.by, func(c contender) bool { return c.name == plainShell })
	if cold < 0 || shell < 0 || len(took[cold]) == 0 || len(took[shell]) == 0 {
		return ratio{}, false
	}
	return ratioOf(took[cold], took[shell]), true
}

// overSSH measures whole jobs on hosts that are reached by SSH, in alternating
// runs, and prints one table.
func overSSH(ctx context.Context, gangrun, dir string, runs int) error {
	barriers := map[string]string{}
	source := filepath.Join(dir, "barrier.c")
	if err := os.WriteFile(source, barrier, 0o600); err != nil {
		return err
	}
	for _, mpi := range flavours {
		barriers[mpi.name] = filepath.Join(dir, "barrier-"+mpi.name)
		if _, err := wholeJob(ctx, dir, mpi.compiler, "-O2", "-o", barriers[mpi.name], source); err != nil {
			return err
		}
	}
	fmt.Printf("whole job over SSH on simulated hosts, %d ranks each: median and middle half of %d alternating runs;\n", ranksEach, runs)
	fmt.Printf("  ratio of the medians, gangrun (warm) to the other, and 90 %% of it by bootstrap; aim: at most 0.5 of mpirun on %d hosts;\n", bedHosts)
	fmt.Printf("  barrier is MPI_Init, MPI_Barrier, MPI_Finalize; cold: gangrun's program is on no host\n")
	fmt.Printf("  %s\n", conditions())
	for _, hosts := range sshHosts {
		for _, job := range sshJobs(gangrun, hosts, barriers) {
			for _, c := range job.by {
				if !c.cold {
					fmt.Printf("  %s\n", strings.Join(c.argv, " "))
				}
			}
		}
	}
	const row = "  %-16s %5v  %-13s %-32s %s\n"
	fmt.Printf(row, "program", "hosts", "by", "time", "ratio")
	for _, hosts := range sshHosts {
		for _, job := range sshJobs(gangrun, hosts, barriers) {
			took, hung, err := job.measure(ctx, dir, runs)
			if err != nil {
				return err
			}
			for i, c := range job.by {
				text, ratio := "none in time", "-"
				if len(took[i]) > 0 {
					text, ratio = took[i].String(), ratioOf(took[0], took[i]).String()
				}
				if hung[i] > 0 {
					ratio += fmt.Sprintf("; hung %d times", hung[i])
				}
				fmt.Printf(row, job.program, job.hosts, c.name, text, ratio)
			}
			if r, ok := job.coldRatio(took); ok {
				fmt.Printf("  a cold start of %s on %d hosts takes %v of %s's time; aim: at most 2 on %d hosts\n", job.program, job.hosts, r, plainShell, bedHosts)
			}
		}
	}
	fmt.Printf("  afterwards, %s\n", conditions())
	return nil
}

// pause is the time after each job. In this time, processes that the job has left on the hosts can end, so that they
// do not disturb the next job.
const pause = 100 * time.Millisecond

// hangLimit is the time after which a job counts as hanging. With MPICH over UCX and TCP, MPI_Finalize sometimes hangs
// if another launcher than gangrun has started the job.
const hangLimit = 10 * time.Second

// hangs is the largest number of rounds that may be lost because a job hangs. With the next such round, the
// measurement stops.
const hangs = 3

// measure runs every contender once in each round. It stops when there are enough rounds in which no job hung, or more
// than hangs rounds without a result. The first round never has a result, because files may not be in memory yet, and
// hosts may lack gangrun's program.
func (j sshJob) measure(ctx context.Context, dir string, runs int) (took []sample, hung []int, err error) {
	took, hung = make([]sample, len(j.by)), make([]int, len(j.by))
	for round := 0; len(took[0]) < runs && round-len(took[0]) <= hangs; round++ {
		var times sample
		for i, c := range j.by {
			if c.cold {
				if err := forget(ctx, dir, j.hosts); err != nil {
					return nil, nil, err
				}
			}
			limited, cancel := context.WithTimeout(ctx, hangLimit)
			d, err := wholeJob(limited, dir, c.argv...)
			late := limited.Err() != nil && ctx.Err() == nil
			cancel()
			switch {
			case late:
				hung[i]++
			case err != nil:
				return nil, nil, err
			default:
				times = append(times, d)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		if round > 0 && len(times) == len(j.by) {
			for i := range times {
				took[i] = append(took[i], times[i])
			}
		}
	}
	return took, hung, nil
}

// forget removes gangrun's program from hosts.
func forget(ctx context.Context, dir string, hosts int) error {
	_, err := wholeJob(ctx, dir, "pdsh", "-S", "-R", "ssh", "-w", strings.Join(bedNames(hosts), ","), "rm -rf ~/.cache/gangrun")
	return err
}
