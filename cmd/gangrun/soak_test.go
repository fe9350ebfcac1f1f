//go:build soak

package main_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakFaults kills random processes of random gangs at random moments, COUNT times. SEED repeats the choices, but
// not the exact times.
func TestSoakFaults(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 200)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	ends, struck, slowest := map[string]int{}, map[string]int{}, time.Duration(0)
	for n := range count {
		t.Run(fmt.Sprintf("round%d", n), func(t *testing.T) {
			r := newRound(rand.New(rand.NewPCG(seed, n)))
			defer func() {
				if t.Failed() {
					t.Logf("SEED=%d round %d: %+v", seed, n, *r)
				}
			}()
			r.run(t)
			ends[r.end]++
			for _, s := range r.strikes {
				if s.hit {
					struck[s.victim]++
				}
			}
			slowest = max(slowest, r.gone)
		})
	}
	t.Logf("%d rounds ended as %v, were struck at %v; the slowest job was gone after %s", count, ends, struck, slowest.Round(time.Millisecond))
}

// round is a random gang with the signals that its processes get.
type round struct {
	ranks, hosts int
	retries      int
	grace        time.Duration
	preflight    string
	output       string
	lines        int // number of lines that each rank prints
	script       string
	strikes      []strike

	killed    bool          // whether the controller was killed
	lostHosts map[int]int   // kills of agents and watchdogs by the PID of the outer watchdog
	last      time.Time     // time of the last strike
	gone      time.Duration // time from then until the last process of the job was seen
	end       string        // the state of the run
}

// strike is a signal to a victim, at a time after the start.
type strike struct {
	victim string
	signal unix.Signal
	after  time.Duration
	hit    bool // whether there was such a victim
}

func newRound(random *rand.Rand) *round {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	r := &round{
		ranks: 1 + random.IntN(8), retries: random.IntN(2), lostHosts: map[int]int{},
		grace:     []time.Duration{0, 300 * time.Millisecond, time.Second, 2 * time.Second}[random.IntN(4)],
		preflight: pick("off", "off", "static", "full"),
		output:    pick("first", "all", "failed", "none"),
		lines:     100 * (1 + random.IntN(120)),
	}
	r.hosts = 1 + random.IntN(min(3, r.ranks))
	r.script = pick("", hide) + pick("", "trap '' TERM; ", "trap 'exit 3' TERM; ", "trap : TERM; ") + `
i=0; while [ $i -lt ` + strconv.Itoa(r.lines) + ` ]; do
	echo "step $i of rank $RANK"; echo "$RANK said $i" >&2; printf . >> count.$GANGRUN_ATTEMPT.$RANK
	i=$((i+1)); [ $((i % 50)) -ne 0 ] || sleep 0.02
done`
	for range 1 + random.IntN(3) {
		s := strike{signal: unix.SIGKILL, after: time.Duration(random.Int64N(int64(2 * time.Second)))}
		s.victim = pick("controller", "agent", "watchdog", "outer watchdog", "leader", "any of the job")
		if s.victim == "controller" {
			s.signal = []unix.Signal{unix.SIGKILL, unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP}[random.IntN(5)]
		}
		r.strikes = append(r.strikes, s)
	}
	slices.SortFunc(r.strikes, func(a, b strike) int { return cmp.Compare(a.after, b.after) })
	return r
}

// run runs the gang to its end and checks what is left.
func (r *round) run(t *testing.T) {
	g := newBench(t).start(nil, "--retries", strconv.Itoa(r.retries), "--grace", r.grace.String(), "--preflight", r.preflight, "--output", r.output,
		"--loopback", strconv.Itoa(r.hosts), "-n", strconv.Itoa(r.ranks), "--", "sh", "-c", r.script)
	r.last = time.Now()
	r.strike(g, r.last)
	if r.killed || r.fatal() {
		r.gone = g.vanish(r.last)
	} else {
		g.finish()
		if left := g.marked()[ownMark]; len(left) > 0 {
			t.Errorf("left when gangrun had ended: %v", slices.Collect(maps.Values(left)))
		}
	}
	r.check(g)
}

// fatal reports whether the gang cannot go on after the strikes. It returns false if there was a preflight, or if only
// processes below the ranks were killed, because the gang may go on then.
func (r *round) fatal() bool {
	return r.retries == 0 && r.preflight == "off" && slices.ContainsFunc(r.strikes, func(s strike) bool {
		return s.hit && s.victim != "any of the job"
	})
}

// strike sends the signals, until gangrun has ended.
func (r *round) strike(g *controlled, start time.Time) {
	for i := range r.strikes {
		s := &r.strikes[i]
		select {
		case <-time.After(time.Until(start.Add(s.after))):
		case <-g.exited:
			return
		}
		pid, outer := r.victim(g, s.victim)
		// If a host loses its agent and both watchdogs, no process is left that could end the hidden processes.
		if pid == 0 || r.lostHosts[outer] == 2 && outer != 0 {
			continue
		}
		moment := time.Now()
		if s.hit = g.strike(pid, s.signal); !s.hit {
			continue
		}
		r.last = moment
		if r.lostHosts[outer]++; s.victim == "controller" && s.signal == unix.SIGKILL {
			r.killed = true
		}
	}
}

// victim returns the PID of the process to strike, or 0 if there is none. If it is an agent or a watchdog, outer is
// the PID of the outer watchdog of its host.
func (r *round) victim(g *controlled, name string) (pid, outer int) {
	found := g.tree()
	one := func(pids []int) int {
		if len(pids) == 0 {
			return 0
		}
		return pids[rand.IntN(len(pids))]
	}
	switch name {
	case "controller":
		return g.cmd.Process.Pid, 0
	case "agent":
		pid = one(found.agents)
		return pid, parent(parent(pid))
	case "watchdog":
		pid = one(found.watchdogs)
		return pid, parent(pid)
	case "outer watchdog":
		pid = one(found.outer)
		return pid, pid
	case "leader":
		return one(found.leaders), 0
	}
	return one(slices.Collect(maps.Keys(g.marked()[jobMark]))), 0
}

// check checks what gangrun reports and what is left.
func (r *round) check(g *controlled) {
	t := g.t
	list := g.list()
	if len(list) == 0 && (r.killed || slices.ContainsFunc(r.strikes, func(s strike) bool {
		return s.hit && s.victim == "controller" && shellCode(g.cmd.ProcessState) == 128+int(s.signal)
	})) {
		r.end = "not begun" // gangrun ended before it had made a run
		return
	}
	if len(list) != 1 {
		t.Fatalf("gangrun ps lists %d runs, want 1", len(list))
	}
	run, code := list[0], g.cmd.ProcessState.ExitCode()
	r.end = string(run.State)
	left := g.leftovers()
	if r.killed { // the directory of the run stays until gangrun clean removes it
		left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == run.Run })
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	switch {
	case r.killed && code == -1: // gangrun was killed before it ended by itself
		if run.State != job.StateLost && run.ExitCode == nil && run.Controller != nil {
			t.Errorf("gangrun ps tells %+v of a run whose controller was killed", run)
		}
	case run.ExitCode == nil || *run.ExitCode != code || (run.State == job.StateSucceeded) != (code == 0):
		t.Errorf("gangrun exited with %s, gangrun ps tells %+v", g.cmd.ProcessState, run)
	}
	if run.State == job.StateLost {
		g.ask("clean", "--dry-run", run.Run)
	}
	for _, name := range append([]string{"stderr"}, r.agentLogs(g)...) {
		if text := g.file(name); strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	r.checkLogs(g, run.State == job.StateSucceeded)
}

func (r *round) agentLogs(g *controlled) (names []string) {
	paths, _ := filepath.Glob(filepath.Join(g.dir, "home/runs/*/agents/*"))
	for _, path := range paths {
		name, _ := filepath.Rel(g.dir, path)
		names = append(names, name)
	}
	return names
}

// checkLogs checks that every log is a beginning of what its rank has printed. If the run has succeeded, nothing may
// be missing. If no agent was killed, the log must have everything that the rank had certainly printed.
func (r *round) checkLogs(g *controlled, whole bool) {
	t := g.t
	paths, _ := filepath.Glob(filepath.Join(g.dir, "home/runs/*/attempts/*/rank-*"))
	agentKilled := slices.ContainsFunc(r.strikes, func(s strike) bool { return s.hit && s.victim == "agent" })
	for _, path := range paths {
		attempt := filepath.Base(filepath.Dir(path))
		if attempt == "trial" {
			attempt = "0"
		}
		var rank int
		var stream string
		if _, err := fmt.Sscanf(filepath.Base(path), "rank-%d.%s", &rank, &stream); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"Terminated\n", "Killed\n"} { // the shell prints this about its sleep
			got = bytes.ReplaceAll(got, []byte(word), nil)
		}
		var want bytes.Buffer
		for i := range r.lines {
			if stream == "out" {
				fmt.Fprintf(&want, "step %d of rank %d\n", i, rank)
			} else {
				fmt.Fprintf(&want, "%d said %d\n", rank, i)
			}
		}
		printed := len(g.file(fmt.Sprintf("count.%s.%d", attempt, rank)))
		switch {
		case !bytes.HasPrefix(want.Bytes(), got):
			t.Errorf("%s is not the beginning of what the rank printed", path)
		case !agentKilled && bytes.Count(got, []byte{'\n'}) < printed:
			t.Errorf("%s has %d lines, the rank had printed %d", path, bytes.Count(got, []byte{'\n'}), printed)
		case whole && attempt != "0" && r.retries == 0 && len(got) != want.Len():
			t.Errorf("%s has %d bytes after a success, want %d", path, len(got), want.Len())
		}
	}
}
