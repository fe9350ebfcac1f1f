package main_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/local"
)

// tellEnv names the directory to which agents write what they have when they get SIGUSR2.
const tellEnv = "GANGRUN_TEST_TELL"

// init makes the test binary serve as the agents that a launcher of this process starts, and as the programs that
// those agents give to mpirun. Unlike agents of gangrun itself, these agents can be asked what they have.
func init() {
	dir := os.Getenv(tellEnv)
	if dir == "" || len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "agent":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGUSR2)
		go func() { // ends with the process
			for range asked {
				if err := tell(dir); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}()
		os.Exit(agent.Main(os.Args[2:]))
	case "shim":
		os.Exit(shim.Main())
	case "rsh":
		os.Exit(shim.Rsh(os.Args[2:]))
	}
}

// mpiGang is a gang with the way in which it ends.
type mpiGang struct {
	args   []string
	cancel bool // the test cancels the gang when all ranks have been started
	// rank is a rank that ends as want says. If want is a success, all other ranks succeed, too.
	rank int
	want job.Exit
}

// mpiGangs end in all ways for which the code differs that removes what was made for the gang. The first one succeeds.
var mpiGangs = []mpiGang{
	{args: []string{"hello"}, want: job.Exit{Status: job.Exited}},
	{args: []string{"sigkill", "3"}, rank: 3, want: job.Exit{Status: job.Signalled, Signal: 9}},
	{args: []string{"splithost"}, want: job.Exit{Status: job.Exited}},
	{args: []string{"mpiabort7", "1"}, rank: 1, want: job.Exit{Status: job.Exited, Code: 7}},
	{args: []string{"setsid-child", "2"}, want: job.Exit{Status: job.Exited}},
	{args: []string{"exit5-preinit", "2"}, rank: 2, want: job.Exit{Status: job.Exited, Code: 5}},
	{args: []string{"hang-barrier", "0"}, cancel: true, want: job.Exit{Status: job.Signalled, Signal: 15}},
	{args: nil, want: job.Exit{Status: job.Unstarted, Code: 127}}, // the program does not exist
}

// leakGrace is the grace of these gangs. No gang needs it, because SIGTERM ends their ranks at once.
const leakGrace = time.Minute

// longLived is a launcher, with its agents, that runs one gang after another.
type longLived struct {
	*bench
	flavour  job.MPI
	program  string
	launcher *launcher.Launcher
	hosts    []job.Host
	tell     string // the directory that tellEnv names
}

// newLongLived returns a launcher that has no agents yet. The launcher is closed at the end of the test.
func newLongLived(t *testing.T, flavour job.MPI) *longLived {
	l := &longLived{bench: newBench(t), flavour: flavour, program: failProgram(t, flavour), tell: t.TempDir()}
	t.Setenv(ownMark, l.mark)
	t.Setenv(tellEnv, l.tell)
	t.Setenv("TMPDIR", l.tmp())
	for _, name := range []string{"h1", "h2"} {
		l.hosts = append(l.hosts, job.Host{Name: name, Address: "127.0.0.1"})
	}
	l.launcher = launcher.New(launcher.Options{
		Dialer: local.Dialer{LogDir: filepath.Join(l.dir, "agents")}, Hosts: l.hosts,
		Tmpdir: func(host string) string { return filepath.Join(l.tmp(), "gangrun-"+host) },
		Output: func(job.Output) {},
	})
	t.Cleanup(func() {
		if err := l.launcher.Close(); err != nil {
			t.Errorf("close the launcher: %v", err)
		}
		l.nothing(nil)
		for _, host := range l.hosts {
			if said := l.file("agents/" + host.Name + ".log"); said != "" {
				t.Errorf("the agent of %s said:\n%s", host.Name, said)
			}
		}
	})
	return l
}

func (l *longLived) tmp() string { return filepath.Join(l.dir, "tmp") }

// run runs a gang as number and checks how it ends.
func (l *longLived) run(number int, gang mpiGang) {
	l.t.Helper()
	logs := filepath.Join(l.dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		l.t.Fatal(err)
	}
	command := append([]string{l.program}, gang.args...)
	if gang.args == nil {
		command[0] += ".missing"
	}
	placement := job.Placement{Hosts: l.hosts}
	for rank := range mpiRanks {
		half := mpiRanks / len(l.hosts)
		placement.Ranks = append(placement.Ranks, job.Rank{Rank: rank, Host: l.hosts[rank/half].Name, LocalRank: rank % half, LocalSize: half, Node: rank / half})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stops []string // why gangrun ended the ranks
	outcome, err := l.launcher.Run(ctx, job.Attempt{
		Run: "leak", Number: number + 1, Command: command, Workdir: l.dir, Placement: placement, LogDir: logs,
		Grace: job.Duration(leakGrace), Stdin: job.StdinNone, Show: job.OutputAll, Steps: 3, MPI: l.flavour,
	}, func(e job.Event) {
		if e.Kind == job.KindStop {
			stops = append(stops, e.Text)
		}
		if gang.cancel && e.Kind == job.KindAllStarted {
			cancel()
		}
	})
	if err != nil {
		l.t.Fatalf("gang %d, %q: %v", number, command, err)
	}
	exit := slices.IndexFunc(outcome.Exits, func(e job.Exit) bool { return e.Rank == gang.rank })
	if len(outcome.Exits) != mpiRanks || len(outcome.Unreaped) > 0 || outcome.Good(mpiRanks) != gang.want.Good() {
		l.t.Fatalf("gang %d, %q, ended with %+v after %q", number, command, outcome, stops)
	}
	if e, want := outcome.Exits[exit], gang.want; e.Status != want.Status || e.Code != want.Code || e.Signal != want.Signal {
		l.t.Fatalf("gang %d, %q: %s, want it %s with code %d, signal %d", number, command, e, want.Status, want.Code, want.Signal)
	}
	if err := os.RemoveAll(logs); err != nil {
		l.t.Fatal(err)
	}
}

// nothing fails the test if processes of this test are left other than those expected. It also fails if anything is
// left in TMPDIR or in shared memory, except an empty temporary directory for each host that has an agent.
func (l *longLived) nothing(expected map[string]int) {
	l.t.Helper()
	left := l.marked()[ownMark]
	for name, pid := range expected {
		if _, ok := left[pid]; !ok && pid != os.Getpid() {
			l.t.Errorf("the %s is gone", name)
		}
		delete(left, pid)
	}
	if len(left) > 0 {
		l.t.Errorf("processes are left: %q", slices.Collect(maps.Values(left)))
	}
	var entries []string
	if err := filepath.WalkDir(l.tmp(), func(path string, _ fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(path, l.tmp()+"/gangrun-"); err == nil && path != l.tmp() && expected["agent of "+name] == 0 {
			entries = append(entries, path)
		}
		return err
	}); err != nil || len(entries) > 0 {
		l.t.Errorf("left in TMPDIR: %q, %v", entries, err)
	}
	for _, pid := range expected {
		if left, err := filepath.Glob(fmt.Sprintf("/dev/shm/gangrun-*-%d.*-*", pid)); err != nil || len(left) > 0 {
			l.t.Errorf("left in shared memory: %q, %v", left, err)
		}
	}
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// find returns the PIDs of this process, of the watchdogs, and of the agents, by their names.
func (l *longLived) find() map[string]int {
	found := map[string]int{"controller": os.Getpid()}
	for _, outer := range children(os.Getpid()) {
		args := arguments(outer)
		if len(args) < 3 || args[1] != "agent" {
			continue
		}
		found["outer watchdog of "+args[2]] = outer
		for _, watchdog := range children(outer) {
			found["watchdog of "+args[2]] = watchdog
			for _, worker := range children(watchdog) {
				found["agent of "+args[2]] = worker
			}
		}
	}
	if len(found) != 1+3*len(l.hosts) {
		l.t.Fatalf("found %v, want this process, and two watchdogs and an agent for each of %d hosts", found, len(l.hosts))
	}
	return found
}

// arguments returns the command line of a process.
func arguments(pid int) []string {
	line, _ := os.ReadFile(proc(pid, "cmdline"))
	return strings.Split(string(line), "\x00")
}

// leakRounds is the number of rounds of gangs after which the memory of a process must be back within its bound. The
// memory of the race detector, which counts as resident, grows and shrinks by several MiB from round to round.
const leakRounds = 3

// mpiLeaks runs each gang once and then up to leakRounds rounds of count gangs, all with one launcher. It fails the
// test if the launcher or an agent has more descriptors or goroutines after a round than before all rounds, or if one
// of them has too much memory after each round.
func mpiLeaks(t *testing.T, gangs []mpiGang, count int) {
	if count < 1 {
		t.Fatalf("a round of %d gangs shows no leak", count)
	}
	for _, flavour := range mpiFlavours {
		t.Run(string(flavour), func(t *testing.T) {
			sharesNothing(t)
			l := newLongLived(t, flavour)
			var served map[string]int
			number := 0
			run := func(count int) {
				for n := range count {
					if l.run(number, gangs[n%len(gangs)]); served == nil {
						served = l.find()
					}
					number++
					l.nothing(served)
				}
			}
			run(len(gangs))
			before := l.rest(served)
			for name, h := range before { // these texts would count as memory of this process
				h.Stacks = ""
				before[name] = h
			}
			for round := 1; ; round++ {
				run(count)
				grown := l.grown(round*count, before, l.restAs(before, served, round*count))
				if len(grown) == 0 {
					return
				}
				if round == leakRounds {
					t.Fatalf("memory has leaked in %q: it is above the bound after each of %d rounds of %d gangs", grown, leakRounds, count)
				}
			}
		})
	}
}

// TestMPILeaks checks that a launcher and its agents do not keep more with every gang, and that nothing is left of any
// gang.
func TestMPILeaks(t *testing.T) { mpiLeaks(t, mpiGangs, len(mpiGangs)) }

// mpiRuns lets gangrun itself run gangs one after another. Some of them fail.
func mpiRuns(t *testing.T, count int) {
	rows := []mpiRow{{mode: "hello"}}
	for _, row := range mpiRows {
		if slices.Contains([]string{"sigkill", "mpiabort7", "exit5-preinit", "setsid-child"}, row.mode) {
			rows = append(rows, row)
		}
	}
	for _, flavour := range mpiFlavours {
		failProgram(t, flavour)
		for n := range count {
			row := rows[n%len(rows)]
			t.Run(fmt.Sprintf("%s/%d/%s", flavour, n, row.mode), func(t *testing.T) {
				sharesNothing(t)
				row.check(t, flavour, 2, 2)
			})
		}
	}
}

// TestMPIRuns checks that a run of gangrun leaves nothing.
func TestMPIRuns(t *testing.T) {
	t.Parallel()
	mpiRuns(t, 3)
}
