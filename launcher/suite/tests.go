package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// test is one of the suite.
type test struct {
	name string
	run  func(*testing.T, Bed)
}

// Run runs every test of the suite.
func Run(t *testing.T, b Bed) {
	tests := []test{
		{"good", good}, {"one agent a host", oneAgent}, {"environment", environment}, {"failures", failures}, {"missing program", missing},
		{"first failure ends the rest", firstFailure}, {"echo waits for the culprit", echo},
		{"logs are whole", logs}, {"output", output}, {"a stuck terminal holds up nothing", stuckTerminal},
		{"progress", progress}, {"stdin", stdin}, {"cancel", cancel}, {"cancel early", cancelEarly}, {"grace", grace}, {"hurry", hurry},
		{"strays", strays}, {"stopped ranks", stoppedRanks}, {"kill", kill}, {"again", again},
		{"log files that exist are not written over", logsExist}, {"descriptors", descriptors},
	}
	if b.Far != nil {
		tests = append(tests, farTests...)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, b) })
	}
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// good: every rank ends well, on one host and on several.
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

// oneAgent: however many ask at once, a host gets one agent.
func oneAgent(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, hosts: 2, command: []string{"true"}})
	hosts := g.attempt.Placement.Hosts[:2]
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			_, unreached, err := g.launcher.Probe(t.Context())
			if err != nil && b.Far == nil { // far ones are one machine, and have no network between them
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

// environment: what every rank is told, and that the user's word is the last.
func environment(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK $GANGRUN_RUN $GANGRUN_RANK $GANGRUN_ATTEMPT $PWD $PYTHONUNBUFFERED "$1" "$2"; echo $MASTER_ADDR:$MASTER_PORT $MINE >&2`)})
	g.attempt.Command = append(g.attempt.Command, "sh", "{{.Rank}}@{{.Host}} {{other}}", "$HOME;`id`\xff")
	g.attempt.Env["MINE"], g.attempt.Env["GROUP_RANK"] = "a b", "set by the user"
	if o := g.run(t.Context()); !o.Good(4) {
		t.Fatalf("%+v", o)
	}
	where := ""
	for r := range 4 {
		want := fmt.Sprintf("%d 4 %d 2 %d set by the user test %d 1 %s 1 %d@h%d {{other}} $HOME;`id`\xff\n", r, r%2, r/2, r, g.attempt.Workdir, r, r/2+1)
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

// failures: how a rank ended is told exactly.
func failures(t *testing.T, b Bed) {
	for _, test := range []struct {
		script string
		want   job.Exit
	}{
		{"exit 3", job.Exit{Status: job.Exited, Code: 3}},
		{"exit 255", job.Exit{Status: job.Exited, Code: 255}},
		{"kill -9 $$", job.Exit{Status: job.Signalled, Signal: 9}},
		{"kill -SEGV $$", job.Exit{Status: job.Signalled, Signal: 11}},
		{"kill -TERM $$", job.Exit{Status: job.Signalled, Signal: 15}},
	} {
		g := b.gang(t, options{ranks: 2, command: sh(`[ $RANK = 1 ] || exec sleep 1000; echo last words >&2; ` + test.script)})
		o := g.run(t.Context())
		first, ok := o.First()
		if !ok || first.Rank != 1 || first.Status != test.want.Status || first.Code != test.want.Code || first.Signal != test.want.Signal || first.PID != g.pid(1) {
			t.Errorf("%s: first is %+v, want %+v", test.script, first, test.want)
		}
		if e := exitOf(t, o, 0); !e.Stopped || e.Signal != 15 {
			t.Errorf("%s: rank 0 is %+v, want it stopped by SIGTERM", test.script, e)
		}
		if !slices.ContainsFunc(o.Lines, func(l job.Line) bool {
			return l.Rank == 1 && l.Source == job.SourceStderr && l.Line == 1 && l.Text == "last words" && !l.Time.IsZero()
		}) {
			t.Errorf("%s: the last words are not in evidence: %+v", test.script, o.Lines)
		}
	}
}

// missing: a program that cannot be started.
func missing(t *testing.T, b Bed) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"no-such-program": 127, "/no/such/program": 127, dir: 126, file: 126} {
		g := b.gang(t, options{ranks: 3, command: []string{name}})
		o := g.run(t.Context())
		first, ok := o.First()
		if !ok || first.Status != job.Unstarted || first.Code != code || !strings.Contains(first.Text, name) {
			t.Errorf("%s: %+v, want it unstarted with code %d and the name in its text", name, first, code)
		}
		if len(o.Exits) != 3 {
			t.Errorf("%s: %d exits, want 3", name, len(o.Exits))
		}
	}
}

// firstFailure: one failure ends the gang, on every host.
func firstFailure(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`[ $RANK = 2 ] || exec sleep 1000; exit 7`)})
	o := g.run(t.Context())
	if first, ok := o.First(); !ok || first.Rank != 2 || first.Code != 7 || first.Host != "h2" {
		t.Errorf("first is %+v, want rank 2 on h2 with code 7", first)
	}
	if len(o.Exits) != 4 || len(o.Unreaped) != 0 {
		t.Errorf("outcome %+v, want 4 exits and none unreaped", o)
	}
	if stops := g.find(job.KindStop); len(stops) != 1 || !strings.Contains(stops[0].Text, "rank 2 on h2 exited with code 7") {
		t.Errorf("stop events %+v, want one that names rank 2", stops)
	}
}

// echo: a rank that dies of another's failure does not cut that one's words.
func echo(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: sh(`
if [ $RANK = 0 ]; then echo 'RuntimeError: Connection closed by peer [127.0.0.1]:12345' >&2; echo > gone; exit 1; fi
while [ ! -e gone ]; do sleep 0.01; done
sleep 0.1; echo 'ValueError: the culprit' >&2; exit 1`)})
	o := g.run(t.Context())
	if e := exitOf(t, o, 1); e.Stopped || e.Code != 1 || g.log(1, "err") != "ValueError: the culprit\n" {
		t.Errorf("the culprit was cut short: %+v, it wrote %q", e, g.log(1, "err"))
	}
}

// logs: every byte of every rank is in its file, written there before the rank
// is told to have ended.
func logs(t *testing.T, b Bed) {
	const size = 8 << 20
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`[ -e rank-000$RANK.out ] && [ -e rank-000$RANK.err ] || exit 9
head -c ` + strconv.Itoa(size) + ` /dev/urandom | tee copy$RANK; head -c 100000 /dev/zero | tr '\0' e >&2; printf 'no newline' >&2`)})
	if o := g.run(t.Context()); !o.Good(4) {
		t.Fatalf("%+v", o)
	}
	for r := range 4 {
		want, err := os.ReadFile(filepath.Join(g.attempt.Workdir, "copy"+strconv.Itoa(r)))
		if err != nil || len(want) != size {
			t.Fatalf("copy of rank %d: %d bytes, %v", r, len(want), err)
		}
		if g.log(r, "out") != string(want) {
			t.Errorf("rank %d: the log is not what it wrote", r)
		}
		if g.log(r, "err") != strings.Repeat("e", 100000)+"no newline" {
			t.Errorf("rank %d: the log of its standard error is not what it wrote", r)
		}
	}
}

// output: what is shown is what the ranks that are shown wrote.
func output(t *testing.T, b Bed) {
	for _, test := range []struct {
		mode  job.OutputMode
		ranks []int
	}{{job.OutputFirst, []int{0}}, {job.OutputAll, []int{0, 1, 2, 3}}, {job.OutputNone, nil}, {job.OutputFailed, nil}} {
		g := b.gang(t, options{ranks: 4, hosts: 2, show: test.mode, command: sh(`seq 1 50000`)})
		if o := g.run(t.Context()); !o.Good(4) {
			t.Fatalf("%+v", o)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if err := g.launcher.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		for r := range 4 {
			g.mu.Lock()
			got := ""
			if g.output[r] != nil {
				got = g.output[r].String()
			}
			g.mu.Unlock()
			want := ""
			if slices.Contains(test.ranks, r) {
				want = g.log(r, "out")
			}
			if got != want {
				t.Errorf("%s: rank %d: %d bytes shown, want %d", test.mode, r, len(got), len(want))
			}
		}
	}
}

// stuckTerminal: output that nobody takes ends no gang and keeps none alive.
func stuckTerminal(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 1, show: job.OutputAll, command: sh(`seq 1 2000000`)})
	g.mu.Lock() // Output blocks
	done := make(chan job.Outcome, 1)
	started := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		close(started)
		o, _ := g.launcher.Run(ctx, g.attempt, func(job.Event) {})
		done <- o
	}()
	<-started
	o := <-done
	g.mu.Unlock()
	if !o.Good(1) {
		t.Errorf("%+v", o)
	}
	if got := g.log(0, "out"); !strings.HasSuffix(got, "\n2000000\n") || strings.Count(got, "\n") != 2000000 {
		t.Errorf("the log has %d lines, want 2000000", strings.Count(got, "\n"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := g.launcher.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if got := g.output[0].Len(); got != len(g.log(0, "out")) {
		t.Errorf("%d bytes shown once it went on, want %d", got, len(g.log(0, "out")))
	}
}

// progress: the first steps are told as they come, and the last one always.
func progress(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: sh(`i=1; while [ $i -le 50 ]; do echo "step $i/50 loss 0.$i"; i=$((i+1)); done; printf 'no progress here\n'`)})
	if o := g.run(t.Context()); !o.Good(2) {
		t.Fatalf("%+v", o)
	}
	for r := range 2 {
		var steps []int64
		for _, e := range g.find(job.KindProgress) {
			if e.Rank == r {
				steps = append(steps, e.Progress.Step)
			}
		}
		if len(steps) < 4 || !slices.Equal(steps[:3], []int64{1, 2, 3}) || steps[len(steps)-1] != 50 {
			t.Errorf("rank %d told steps %v, want 1, 2, 3 ... 50", r, steps)
		}
	}
}

// stdin goes to the rank that is to have it, whole and with its end.
func stdin(t *testing.T, b Bed) {
	text := strings.Repeat("line of input\n", 20000)
	for _, test := range []struct {
		feeds job.Stdin
		want  [2]int
	}{{job.StdinRank(0), [2]int{len(text), 0}}, {job.StdinRank(1), [2]int{0, len(text)}}, {job.StdinAll, [2]int{len(text), len(text)}}, {job.StdinNone, [2]int{0, 0}}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			_, _ = w.WriteString(text)
			_ = w.Close()
		}()
		g := b.gang(t, options{ranks: 2, stdin: r, feeds: test.feeds, command: sh(`wc -c`)})
		if o := g.run(t.Context()); !o.Good(2) {
			t.Fatalf("%+v", o)
		}
		_ = r.Close()
		<-wrote
		for rank, want := range test.want {
			if got := strings.TrimSpace(g.log(rank, "out")); got != strconv.Itoa(want) {
				t.Errorf("stdin to %s: rank %d read %s bytes, want %d", test.feeds, rank, got, want)
			}
		}
	}
	// A rank that reads nothing, or ends while input is still to come.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	g := b.gang(t, options{ranks: 1, stdin: r, feeds: job.StdinRank(0), command: []string{"true"}})
	if o := g.run(t.Context()); !o.Good(1) {
		t.Errorf("%+v", o)
	}
}

// cancel ends the gang with SIGTERM.
func cancel(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, command: sh(`trap 'echo told; exit 0' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	for r := range 4 {
		g.exists("ready" + strconv.Itoa(r))
	}
	end()
	o := wait()
	for r := range 4 {
		if e := exitOf(t, o, r); !e.Stopped || !e.Good() || g.log(r, "out") != "told\n" {
			t.Errorf("rank %d: %+v, wrote %q; want it told and stopped", r, e, g.log(r, "out"))
		}
	}
}

// cancelEarly: an order to stop is never lost, however early it comes.
func cancelEarly(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 4, hosts: 2, grace: time.Hour, command: []string{"sleep", "1000"}})
	for n := range 20 {
		g.attempt.Number, g.attempt.LogDir = n+1, t.TempDir()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := g.launcher.Run(ctx, g.attempt, func(job.Event) {})
			done <- err
		}()
		for range 50 * n { // from before the first step of it to its middle
			runtime.Gosched()
		}
		end()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		case <-time.After(limit):
			t.Fatalf("attempt %d: the gang did not end within %s", n+1, limit)
		}
	}
}

// grace: who does not end of SIGTERM is killed, and not before.
func grace(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: 300 * time.Millisecond, command: sh(`trap '' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	g.exists("ready1")
	before := time.Now()
	end()
	o := wait()
	if took := time.Since(before); took < 300*time.Millisecond {
		t.Errorf("killed after %s, before its grace was over", took)
	}
	for r := range 2 {
		if e := exitOf(t, o, r); !e.Stopped || e.Signal != 9 {
			t.Errorf("rank %d: %+v, want it killed", r, e)
		}
	}
}

// hurry ends a gang that is in its grace period at once.
func hurry(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: time.Hour, command: sh(`trap '' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	g.exists("ready1")
	end()
	g.await("a stop event", func() bool { return len(g.find(job.KindStop)) > 0 })
	g.launcher.Hurry()
	o := wait()
	for r := range 2 {
		if e := exitOf(t, o, r); e.Signal != 9 {
			t.Errorf("rank %d: %+v, want it killed", r, e)
		}
	}
}

// strays: what ranks leave behind ends with the gang, however it hides.
func strays(t *testing.T, b Bed) {
	for name, script := range map[string]string{
		"child":          `sleep 1000 & echo $! > pid$RANK`,
		"setsid":         `setsid sh -c 'echo $$ > pid'$RANK'; exec sleep 1000' & while [ ! -s pid$RANK ]; do sleep 0.01; done`,
		"double fork":    `(setsid sh -c 'trap "" TERM HUP; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; while [ ! -s pid$RANK ]; do sleep 0.01; done`,
		"closed streams": `setsid sh -c 'exec >&- 2>&- <&-; trap "" TERM; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' & while [ ! -s pid$RANK ]; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			g := b.gang(t, options{ranks: 2, grace: 200 * time.Millisecond, command: sh(script)})
			if o := g.run(t.Context()); !o.Good(2) {
				t.Fatalf("%+v", o)
			}
			g.exists("pid0")
			g.noneLeft()
		})
	}
}

// stoppedRanks: a rank that is stopped ends all the same.
func stoppedRanks(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, grace: 10 * time.Second, command: sh(`trap 'exit 5' TERM; echo ready > ready$RANK; while :; do sleep 0.02; done`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	g.exists("ready0")
	if err := syscall.Kill(g.pid(0), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	g.exists("ready1")
	end()
	o := wait()
	if e := exitOf(t, o, 0); e.Code != 5 {
		t.Errorf("rank 0: %+v, want it to have acted on SIGTERM with code 5", e)
	}
}

// kill: whoever of gangrun's own processes is killed, nothing is left, and the
// next attempt finds a new agent.
func kill(t *testing.T, b Bed) {
	const hidden = `(setsid sh -c 'trap "" TERM; echo $$ > pid'$RANK'; while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; while [ ! -s pid$RANK ]; do sleep 0.01; done; echo ready > ready$RANK; exec sleep 1000`
	for _, whom := range []string{"agent", "watchdog"} {
		t.Run(whom, func(t *testing.T) {
			g := b.gang(t, options{ranks: 2, grace: 500 * time.Millisecond, command: sh(hidden)})
			wait := g.start(t.Context())
			g.exists("ready0")
			g.exists("ready1")
			pids := b.Agents(os.Getpid())[whom]
			if len(pids) != 1 {
				t.Fatalf("%d processes are called %s, want 1: %v", len(pids), whom, pids)
			}
			if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			o := wait()
			g.noneLeft()
			if len(o.Exits) != 2 || len(o.Unreaped) != 0 {
				t.Errorf("outcome %+v, want 2 exits and none unreaped", o)
			}
			first, ok := o.First()
			if whom == "agent" && (!ok || first.Status != job.Lost) {
				t.Errorf("first is %+v, want a lost rank", first)
			}
			if whom == "watchdog" && o.Good(2) {
				t.Errorf("the gang ended well without its watchdog")
			}
			g.attempt.Number, g.attempt.LogDir, g.attempt.Command = 2, t.TempDir(), []string{"true"}
			if o := g.run(t.Context()); !o.Good(2) {
				t.Errorf("the next attempt: %+v", o)
			}
		})
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

// logsExist: what is already written is not lost.
func logsExist(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: []string{"true"}})
	path := filepath.Join(g.attempt.LogDir, job.LogName(1, "out"))
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := g.run(t.Context())
	// The log of a far rank is brought here, perhaps by one controller after another:
	// it goes on behind what is there.
	first, ok := o.First()
	if b.Far == nil && (!ok || first.Status != job.Unstarted || !strings.Contains(first.Text, path)) {
		t.Errorf("first is %+v, want it unstarted, naming %s", first, path)
	}
	if b.Far != nil && !o.Good(2) {
		t.Errorf("%+v", o)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, []byte("precious")) {
		t.Errorf("the file now holds %q, %v", data, err)
	}
}

// descriptors: a rank inherits its three streams and nothing else.
func descriptors(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: []string{"ls", "/proc/self/fd"}})
	if o := g.run(t.Context()); !o.Good(2) {
		t.Fatalf("%+v", o)
	}
	for r := range 2 {
		if got := g.log(r, "out"); got != "0\n1\n2\n3\n" { // 3 is the directory that ls reads
			t.Errorf("rank %d has descriptors %q, want 0, 1, 2 and that of ls", r, got)
		}
	}
}
