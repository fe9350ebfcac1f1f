// Package suite is the conformance test of an agents.Dialer. Every way to start agents must
// pass it.
package suite

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
)

// limit is how long the suite waits for anything. A test that waits longer fails.
const limit = 5 * time.Minute

// Bed is the test bed on which the suite runs.
type Bed struct {
	// Dialer returns a Dialer that starts agents on the hosts h1, h2 and so on.
	Dialer func(t *testing.T) agents.Dialer
	// Agents returns the PIDs of the agents and watchdogs that belong to the controller with
	// the PID self. The keys are "agent", "watchdog" and "outer watchdog".
	Agents func(self int) map[string][]int
	// Far controls the connections to agents on other machines. It is nil if the agents are on the controller's
	// machine. In the tests, all these other machines are really one machine, so they share their files.
	Far *Far
	// Image and Box describe the image and the containers of all gangs. If they are nil, the
	// gangs run without containers. The directories of a test are mounted in addition to the
	// mounts of Box.
	Image *launcher.Image
	Box   *job.Box
	// Only names the tests to run; nil means all. If another bed with the same transport runs all tests in
	// "make test", a bed may run only some tests there, and the others in "make soak".
	Only []string
}

// Far controls the connections to agents.
type Far struct {
	// Cut makes all connections silent, including connections that are made later. Restore undoes this: data
	// that was sent in the meantime then arrives.
	Cut, Restore func()
	// Break has functions that end all connections. Each function ends them in a different way. The keys are
	// the names of these ways.
	Break map[string]func(t *testing.T)
	// Left returns what an agent may leave on its host besides processes.
	Left func() []string
}

// The launcher's limits for silence. No host of the suite is silent for so long.
const hostTimeout, orphanGrace = limit, limit + 30*time.Second

// Marker is the environment variable by which the suite finds all processes of a gang.
const Marker = "GANGRUN_SUITE_MARK"

// Marked returns the PIDs of all live processes whose Marker has the value mark.
func Marked(mark string) []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == Marker+"="+mark }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gang is the job of one test.
type gang struct {
	t        *testing.T
	launcher *launcher.Launcher
	attempt  job.Attempt
	mark     string

	mu     sync.Mutex
	events []job.Event
	output map[int]*bytes.Buffer
	seen   chan struct{} // has a value if there are new events
}

// options are the options of a gang.
type options struct {
	ranks, hosts int
	command      []string
	grace        time.Duration
	stdin        *os.File
	feeds        job.Stdin
	show         job.OutputMode
	tty          job.TTY
}

func (b Bed) gang(t *testing.T, o options) *gang {
	t.Helper()
	if o.hosts == 0 {
		o.hosts = 1
	}
	if o.grace == 0 {
		o.grace = limit / 2 // no rank needs that much time
	}
	if o.feeds == "" {
		o.feeds = job.StdinNone
	}
	if o.show == "" {
		o.show = job.OutputNone
	}
	dir := t.TempDir()
	g := &gang{t: t, mark: filepath.Base(dir) + t.Name() + strconv.Itoa(rand.Int()), output: map[int]*bytes.Buffer{}, seen: make(chan struct{}, 1)}
	var placement job.Placement
	var hosts []job.Host
	for h := range o.hosts {
		host := job.Host{Name: "h" + strconv.Itoa(h+1), Address: "127.0.0.1"}
		hosts = append(hosts, host)
		local := o.ranks / o.hosts
		for l := range local {
			placement.Ranks = append(placement.Ranks, job.Rank{Rank: len(placement.Ranks), Host: host.Name, LocalRank: l, LocalSize: local, Node: h})
		}
	}
	placement.Hosts = hosts
	g.launcher = launcher.New(launcher.Options{
		Dialer: b.Dialer(t), Hosts: hosts, Image: b.Image, HostTimeout: hostTimeout, OrphanGrace: orphanGrace, Stdin: o.stdin, KeepStdin: 1 << 20, Settle: limit,
		Unclear: func(_ job.Exit, printed []job.Line) bool {
			return len(printed) > 0 && strings.Contains(printed[len(printed)-1].Text, "Connection closed by peer")
		},
		Output: func(out job.Output) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.output[out.Rank] == nil {
				g.output[out.Rank] = &bytes.Buffer{}
			}
			g.output[out.Rank].Write(out.Data)
		},
	})
	t.Cleanup(func() {
		if err := g.launcher.Close(); err != nil {
			t.Errorf("close the launcher: %v", err)
		}
		g.noneLeft()
	})
	g.attempt = job.Attempt{
		Run: "test" + strconv.Itoa(rand.Int()), Number: 1, Command: o.command, Workdir: dir, Placement: placement, LogDir: dir,
		Box: b.box(dir), Env: map[string]string{Marker: g.mark}, Grace: job.Duration(o.grace), Stdin: o.feeds, TTY: o.tty, Show: o.show, Steps: 3,
	}
	return g
}

// box returns the containers for a gang that works in dir. It returns nil if the gang has no containers.
func (b Bed) box(dir string) *job.Box {
	if b.Box == nil {
		return nil
	}
	box, all := *b.Box, filepath.Dir(dir) // the directories of a test are below one directory
	box.Mounts = append(slices.Clone(box.Mounts), job.Mount{Source: all, Target: all, Write: true})
	return &box
}

// run returns the outcome of the gang. A run longer than limit fails the test.
func (g *gang) run(ctx context.Context) job.Outcome {
	g.t.Helper()
	outcome, err := g.try(ctx)
	if err != nil {
		g.t.Fatalf("run: %v", err)
	}
	return outcome
}

// try is like run, but may be called in another goroutine than the test's.
func (g *gang) try(ctx context.Context) (job.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outcome, err := g.launcher.Run(ctx, g.attempt, func(e job.Event) {
		g.mu.Lock()
		g.events = append(g.events, e)
		g.mu.Unlock()
		select {
		case g.seen <- struct{}{}:
		default:
		}
	})
	if err == nil && ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("the gang did not end within %s", limit)
	}
	return outcome, err
}

// start runs the gang in the background and waits until every rank has been started. The function that it returns waits
// for the outcome.
func (g *gang) start(ctx context.Context) func() job.Outcome {
	g.t.Helper()
	var outcome job.Outcome
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, err = g.try(ctx)
	}()
	wait := func() job.Outcome {
		g.t.Helper()
		select {
		case <-done:
		case <-time.After(2 * limit):
			g.t.Fatalf("the gang is still there after %s", 2*limit)
		}
		if err != nil {
			g.t.Fatalf("run: %v", err)
		}
		return outcome
	}
	g.await("all ranks started", func() bool {
		select {
		case <-done:
			wait() // fails the test if Run has failed
		default:
		}
		return len(g.find(job.KindAllStarted)) == 1
	})
	return wait
}

func (g *gang) find(kind job.Kind) (found []job.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// pid returns the PID of a rank.
func (g *gang) pid(rank int) int {
	for _, e := range g.find(job.KindStarted) {
		if e.Rank == rank {
			return e.PID
		}
	}
	g.t.Fatalf("rank %d has not been started", rank)
	return 0
}

// await waits until ok returns true. It tries again after each event, and at intervals.
func (g *gang) await(what string, ok func() bool) {
	g.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(limit); !ok(); {
		select {
		case <-g.seen:
		case <-tick.C:
		case <-deadline:
			g.t.Fatalf("waited %s in vain for: %s", limit, what)
		}
	}
}

// log returns what is in a rank's log file.
func (g *gang) log(rank int, stream string) string {
	data, err := os.ReadFile(filepath.Join(g.attempt.LogDir, job.LogName(rank, stream)))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}

// exists waits for a file in the gang's directory that is not empty.
func (g *gang) exists(name string) {
	g.t.Helper()
	g.await("file "+name, func() bool {
		info, err := os.Stat(filepath.Join(g.attempt.Workdir, name))
		return err == nil && info.Size() > 0
	})
}

// noneLeft fails the test if a process of the gang is left.
func (g *gang) noneLeft() {
	if pids := Marked(g.mark); len(pids) > 0 {
		for _, pid := range pids {
			cmd, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			g.t.Errorf("process %d is left: %q", pid, bytes.ReplaceAll(cmd, []byte{0}, []byte{' '}))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// exitOf returns a rank's exit.
func exitOf(t *testing.T, o job.Outcome, rank int) job.Exit {
	t.Helper()
	i := slices.IndexFunc(o.Exits, func(e job.Exit) bool { return e.Rank == rank })
	if i < 0 {
		t.Fatalf("rank %d has no exit in %+v", rank, o)
	}
	return o.Exits[i]
}
