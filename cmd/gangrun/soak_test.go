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

// TestSoakFaults kills random processes of random gangs at random moments,
// COUNT times. SEED repeats it, as far as time lets it be repeated.
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

// round is one gang and what is done to it.
type round struct {
	ranks, hosts int
	retries      int
	grace        time.Duration
	preflight    string
	output       string
	lines        int // that each rank prints
	script       string
	strikes      []strike

	killed    bool          // the controller was
	lostHosts map[int]int   // how many of the agent and its watchdogs were struck, by the outer one's PID
	last      time.Time     // the last strike
	gone      time.Duration // from then to the end of the job's last process
	end       string        // the run's state
}

// strike is a signal to a victim at a moment after the start.
type strike struct {
	victim string
	signal unix.Signal
	after  time.Duration
	hit    bool // there was such a victim
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

// run runs the gang to its end and looks at what is left.
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

// fatal reports whether the gang cannot go on after what was done to it. In a
// preflight one can strike what is not needed any more, and among the job's
// processes one that is not missed.
func (r *round) fatal() bool {
	return r.retries == 0 && r.preflight == "off" && slices.ContainsFunc(r.strikes, func(s strike) bool {
		return s.hit && s.victim != "any of the job"
	})
}

// strike carries the strikes out while gangrun lives.
func (r *round) strike(g *controlled, start time.Time) {
	for i := range r.strikes {
		s := &r.strikes[i]
		select {
		case <-time.After(time.Until(start.Add(s.after))):
		case <-g.exited:
			return
		}
		pid, outer := r.victim(g, s.victim)
		// A host that loses its agent and both watchdogs has nobody left to end
		// what has hidden.
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

// victim finds the process to strike, 0 when there is none, and for one of
// gangrun's own on a host that host's outer watchdog.
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

// check looks at what gangrun tells and has left.
func (r *round) check(g *controlled) {
	t := g.t
	list := g.list()
	if len(list) == 0 && (r.killed || slices.ContainsFunc(r.strikes, func(s strike) bool {
		return s.hit && s.victim == "controller" && g.cmd.ProcessState.ExitCode() == 128+int(s.signal)
	})) {
		r.end = "not begun" // it was ended before it had made its run
		return
	}
	if len(list) != 1 {
		t.Fatalf("gangrun ps lists %d runs, want 1", len(list))
	}
	run, code := list[0], g.cmd.ProcessState.ExitCode()
	r.end = string(run.State)
	left := g.leftovers()
	if r.killed { // its directory stays until it is cleaned away
		left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == run.Run })
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	switch {
	case r.killed && code == -1: // the kill came before its end
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

// checkLogs compares every log with what its rank has printed, of which it must
// be the beginning, and with how much the rank had surely printed, unless the
// agent was killed that was to write it. After a success it is all there.
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
		for _, word := range []string{"Terminated\n", "Killed\n"} { // of its sleep, says the shell
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
