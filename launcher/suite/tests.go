package suite

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// test is one test of the suite.
type test struct {
	name string
	run  func(*testing.T, Bed)
}

// Run runs every test of the suite.
func Run(t *testing.T, b Bed) {
	tests := []test{
		{"good", good}, {"one agent a host", oneAgent}, {"environment", environment}, {"failures", failures}, {"missing program", missing},
		{"first failure ends the rest", firstFailure}, {"echo waits for the culprit", echo},
		{"logs are whole", logs}, {"terminals", terminals}, {"output", output}, {"a stuck terminal holds up nothing", stuckTerminal},
		{"progress", progress}, {"burst", burst}, {"stdin", stdin}, {"contained", contained}, {"cancel", cancel}, {"cancel early", cancelEarly}, {"grace", grace}, {"hurry", hurry}, {"signals", signals},
		{"strays", strays}, {"stopped ranks", stoppedRanks}, {"kill", kill}, {"again", again},
		{"log files that exist are not written over", logsExist}, {"descriptors", descriptors},
	}
	if b.Far != nil {
		tests = append(tests, farTests...)
	}
	for _, test := range tests {
		if b.Only != nil && !slices.Contains(b.Only, test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) { test.run(t, b) })
	}
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// good: every rank exits with 0, on one host and on several.
func good(t *testing.T, b Bed) {
	for _, hosts := range []int{1, 2, 4} {
		g := b.gang(t, options{ranks: 8, hosts: hosts, command: []string{"true"}})
		o := g.run(t.Context())
		if !o.Good(8) {
			t.Errorf("%d hosts: %+v", hosts, o)
		}
		if n := len(g.find(job.KindExit)); n != 8 {
			t.Errorf("%d hosts: %d exit events, want 8", hosts, n)
		}
	}
}

// oneAgent: concurrent requests for the agent of a host get the same agent.
func oneAgent(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, hosts: 2, command: []string{"true"}})
	hosts := g.attempt.Placement.Hosts[:2]
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			_, unreached, err := g.launcher.Probe(t.Context())
			if err != nil && b.Far == nil { // the hosts of Far are one machine, and so have no network in common
				t.Error(err)
			}
			for _, u := range unreached {
				t.Errorf("%s: %v", u.Host, u.Err)
			}
		})
		asking.Go(func() {
			if _, err := g.launcher.Survey(t.Context(), hosts, job.Survey{Command: g.attempt.Command, Workdir: g.attempt.Workdir}); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if pids := b.Agents(os.Getpid())["agent"]; len(pids) != 2 {
		t.Errorf("two hosts have %d agents: %v", len(pids), pids)
	}
}

// environment: ranks get gangrun's variables, and the user's values take precedence.
func environment(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GANGRUN_RUN $GANGRUN_RANK $GANGRUN_ATTEMPT $PWD $PYTHONUNBUFFERED "$1" "$2"; echo $MASTER_ADDR:$MASTER_PORT $MINE >&2`)})
	g.attempt.Command = append(g.attempt.Command, "sh", "{{.Rank}}@{{.Host}} {{other}}", "$HOME;`id`\xff")
	g.attempt.Env["MINE"], g.attempt.Env["GROUP_RANK"] = "a b", "set by the user"
	if o := g.run(t.Context()); !o.Good(4) {
		t.Fatalf("%+v", o)
	}
	where := ""
	for r := range 4 {
		want := fmt.Sprintf("%d 4 %d 2 %d set by the user %s %d 1 %s 1 %d@h%d {{other}} $HOME;`id`\xff\n", r, r%2, r/2, g.attempt.Run, r, g.attempt.Workdir, r, r/2+1)
		if got := g.log(r, "out"); got != want {
			t.Errorf("rank %d got\n%swant\n%s", r, got, want)
		}
		at, mine, _ := strings.Cut(g.log(r, "err"), " ")
		host, port, _ := strings.Cut(at, ":")
		if n, err := strconv.Atoi(port); err != nil || n < 1 || host != "127.0.0.1" || mine != "a b\n" {
			t.Errorf("rank %d meets at %q, MINE=%q", r, at, mine)
		}
		if where != "" && at != where {
			t.Errorf("rank %d meets at %s, another at %s", r, at, where)
		}
		where = at
	}
}

// again: one launcher runs many attempts.
func again(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh("exit $((RANK == 3))")})
	for n := range 10 {
		g.attempt.Number, g.attempt.LogDir = n+1, t.TempDir()
		o := g.run(t.Context())
		if first, ok := o.First(); !ok || first.Rank != 3 {
			t.Fatalf("attempt %d: %+v", n+1, o)
		}
	}
}

// descriptors: a rank inherits its three streams, the descriptor of its heartbeats, and nothing else.
func descriptors(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: []string{"ls", "/proc/self/fd"}})
	if o := g.run(t.Context()); !o.Good(2) {
		t.Fatalf("%+v", o)
	}
	for r := range 2 {
		if got := g.log(r, "out"); got != "0\n1\n2\n3\n4\n" { // 4 is the directory that ls reads
			t.Errorf("rank %d has descriptors %q, want 0, 1, 2, 3 and that of ls", r, got)
		}
	}
}
