package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// farTests are the tests for agents whose connections can break.
var farTests = []test{
	{"a connection that is cut and restored", cut}, {"a connection that breaks", broken}, {"lost agent", lostAgent},
	{"two controllers", twoControllers}, {"nothing is left", nothingLeft}, {"given up", givenUp},
}

// cutFor is how long the connections are silent at least. In this time, gangrun tries a second connection.
const cutFor = 4 * time.Second

// numbered prints numbered lines until the file "enough" exists, and then END.
const numbered = `i=0; while [ ! -e enough ]; do i=$((i+1)); echo "$RANK line $i of what rank $RANK says"; echo "$i" >&2; sleep 0.03; done; echo END; echo END >&2`

// checkNumbered fails the test if a line of a log is missing, repeated or truncated.
func (g *gang) checkNumbered(ranks int) {
	g.t.Helper()
	for r := range ranks {
		for stream, format := range map[string]string{"out": strconv.Itoa(r) + " line %d of what rank " + strconv.Itoa(r) + " says", "err": "%d"} {
			lines := strings.Split(strings.TrimSuffix(g.log(r, stream), "\n"), "\n")
			last := len(lines) - 1
			for i, line := range lines[:last] {
				if want := fmt.Sprintf(format, i+1); line != want {
					g.t.Fatalf("rank %d: line %d of %s is %q, want %q", r, i+1, stream, line, want)
				}
			}
			if lines[last] != "END" || last == 0 {
				g.t.Errorf("rank %d: %s has %d lines and ends in %q, want END", r, stream, last, lines[last])
			}
		}
	}
}

// lines waits until a rank's log has 20 more lines.
func (g *gang) lines(rank int) {
	g.t.Helper()
	count := func() int { return strings.Count(g.log(rank, "out"), "\n") }
	enough := count() + 20
	g.await(fmt.Sprintf("line %d of rank %d", enough, rank), func() bool { return count() >= enough })
}

func (g *gang) enough() {
	g.t.Helper()
	if err := os.WriteFile(g.attempt.Workdir+"/enough", nil, 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// cut: while the connections are silent, the gang continues to run, and no output is lost or repeated. Each host is
// reported as silent, and later as in contact again.
func cut(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 8, hosts: 4, command: sh(numbered)})
	wait := g.start(t.Context())
	g.lines(7)
	b.Far.Cut()
	restore := sync.OnceFunc(b.Far.Restore)
	defer restore()
	since := time.Now()
	hosts := func(kind job.Kind) int { // the hosts that events of that kind name
		named := map[string]bool{}
		for _, e := range g.find(kind) {
			named[e.Host] = true
		}
		return len(named)
	}
	g.await("all hosts suspect", func() bool { return hosts(job.KindSuspect) == 4 && time.Since(since) >= cutFor })
	restore()
	g.await("all hosts heard again", func() bool { return hosts(job.KindHeard) == 4 })
	g.lines(7)
	g.enough()
	if o := wait(); !o.Good(8) {
		t.Fatalf("%+v", o)
	}
	g.checkNumbered(8)
}

// broken: the processes that carry the connections may die any number of times.
func broken(t *testing.T, b Bed) {
	for _, way := range slices.Sorted(maps.Keys(b.Far.Break)) {
		t.Run(way, func(t *testing.T) {
			g := b.gang(t, options{ranks: 8, hosts: 4, command: sh(numbered)})
			wait := g.start(t.Context())
			for range 3 {
				g.lines(6)
				b.Far.Break[way](t)
			}
			g.lines(6)
			g.enough()
			if o := wait(); !o.Good(8) {
				t.Fatalf("%+v", o)
			}
			g.checkNumbered(8)
		})
	}
}

// lostAgent: the death of an agent is reported long before its host would count as silent. When the gang has ended, the
// ranks of the agent are gone.
func lostAgent(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: []string{"sleep", "1000"}})
	wait := g.start(t.Context())
	pids := b.Agents(os.Getpid())["agent"]
	if len(pids) != 2 {
		t.Fatalf("2 hosts have %d agents: %v", len(pids), pids)
	}
	killed := time.Now()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o := wait()
	first, ok := o.First()
	if !ok || first.Status != job.Lost || len(o.Exits) != 4 || len(o.Unreaped) != 0 {
		t.Fatalf("outcome %+v, want lost ranks first, 4 exits and none unreaped", o)
	}
	took := g.find(job.KindExit)[0].Time.Sub(killed) // by this machine's clock
	t.Logf("known after %s, all over after %s", took.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
	if took > hostTimeout/2 {
		t.Errorf("known after %s: that is what silence would tell", took)
	}
}

// twoControllers: gangs of two controllers on one host do not affect each other.
func twoControllers(t *testing.T, b Bed) {
	one := b.gang(t, options{ranks: 4, hosts: 2, command: sh(numbered)})
	two := b.gang(t, options{ranks: 4, hosts: 2, command: sh("sleep 1000")})
	waitOne := one.start(t.Context())
	ctx, end := context.WithCancel(t.Context())
	waitTwo := two.start(ctx)
	one.lines(3)
	end()
	if o := waitTwo(); len(o.Exits) != 4 || len(o.Unreaped) != 0 {
		t.Errorf("the gang that was cancelled: %+v", o)
	}
	if err := two.launcher.Close(); err != nil {
		t.Error(err)
	}
	one.lines(3)
	one.enough()
	if o := waitOne(); !o.Good(4) {
		t.Errorf("the other one: %+v", o)
	}
	one.checkNumbered(4)
}

// nothingLeft: when a controller has closed, its agents and their files are gone.
func nothingLeft(t *testing.T, b Bed) {
	before := b.Far.Left()
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`seq 1 10000`)})
	if o := g.run(t.Context()); !o.Good(4) {
		t.Fatalf("%+v", o)
	}
	if err := g.launcher.Close(); err != nil {
		t.Fatal(err)
	}
	b.none(t)
	b.leftNothing(t, before)
}

// leftNothing waits until the hosts have nothing that they did not have before.
func (b Bed) leftNothing(t *testing.T, before []string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left = slices.DeleteFunc(b.Far.Left(), func(path string) bool { return slices.Contains(before, path) })
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left are %q", left)
}

// givenUp: a controller that ends while it starts its agents leaves no agent behind.
func givenUp(t *testing.T, b Bed) {
	before := b.Far.Left()
	for n := range 12 {
		g := b.gang(t, options{ranks: 2, hosts: 2, command: []string{"true"}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n*n)*time.Millisecond)
		_, err := g.launcher.Run(ctx, g.attempt, func(job.Event) {})
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v", n*n, err)
		}
		if err := g.launcher.Close(); err != nil {
			t.Error(err)
		}
	}
	b.none(t)
	b.leftNothing(t, before)
}

// none waits until there is no agent. An agent ends long before its orphan grace is over if its controller is gone
// before the agent has received a message.
func (b Bed) none(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(orphanGrace / 2); ; {
		left := b.Agents(os.Getpid())
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("left are %v", left)
		}
	}
}
