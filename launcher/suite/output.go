package suite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// logs: before the end of a rank is reported, the rank's log has every byte that the rank has printed.
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

// terminals: standard output is a terminal only if the attempt says so. Standard input and
// standard error never are. The log has the bytes as the rank wrote them.
func terminals(t *testing.T, b Bed) {
	const script = `for fd in 0 1 2; do if [ -t $fd ]; then echo $fd >> ttys$RANK; fi; done
printf 'a\n\r\nb\004\003\032\034\021\023\177\000\377\t\r' | tee copy$RANK; head -c 1000000 /dev/urandom | tee -a copy$RANK
echo error >&2; [ $RANK = 3 ] || exit 0; kill -9 $$`
	for _, test := range []struct {
		tty  job.TTY
		mpi  job.MPI
		ttys string // the descriptors that are terminals
	}{
		{job.TTYOn, job.MPINone, "1\n"}, {job.TTYOn, job.MPIMPICH, "1\n"}, {job.TTYOff, job.MPINone, ""}, {job.TTYAuto, job.MPINone, ""},
		{job.TTYAuto, job.MPIMPICH, ""}, {"", job.MPIAuto, ""},
	} {
		g := b.gang(t, options{ranks: 4, hosts: 2, tty: test.tty, command: sh(script), grace: limit})
		g.attempt.MPI = test.mpi
		if e := exitOf(t, g.run(t.Context()), 3); e.Signal != 9 {
			t.Errorf("--tty %q --mpi %s: rank 3 is %+v, want it killed", test.tty, test.mpi, e)
		}
		ttys, err := os.ReadFile(filepath.Join(g.attempt.Workdir, "ttys3"))
		if err != nil && !os.IsNotExist(err) || string(ttys) != test.ttys {
			t.Errorf("--tty %q --mpi %s: terminals are %q, %v; want %q", test.tty, test.mpi, ttys, err, test.ttys)
		}
		want, err := os.ReadFile(filepath.Join(g.attempt.Workdir, "copy3"))
		if err != nil || len(want) < 1000000 {
			t.Fatalf("the copy of rank 3 has %d bytes, %v", len(want), err)
		}
		if g.log(3, "out") != string(want) || g.log(3, "err") != "error\n" {
			t.Errorf("--tty %q --mpi %s: the logs of rank 3 are not what it wrote", test.tty, test.mpi)
		}
	}
}

// output: Output gets what the shown ranks print, and nothing else.
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

// stuckTerminal: if output cannot be written to the terminal, that neither ends a gang nor keeps it running.
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

// progress: the first steps are reported at once, and the last one always.
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
			t.Errorf("rank %d reported steps %v, want 1, 2, 3 ... 50", r, steps)
		}
	}
}

// burst: if a rank prints many steps at once, the last one is reported even if the rank then hangs. A loss that is not
// a number is reported, too.
func burst(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: sh(`i=1; while [ $i -le 500 ]; do loss=0.5; [ $i -lt 250 ] || loss=nan; echo "step $i/900 loss $loss"; i=$((i+1)); done; sleep 1000`)})
	ctx, end := context.WithCancel(t.Context())
	wait := g.start(ctx)
	last := func(rank int) (p job.Progress) {
		for _, e := range g.find(job.KindProgress) {
			if e.Rank == rank {
				p = *e.Progress
			}
		}
		return p
	}
	for r := range 2 {
		g.await("the last step of rank "+strconv.Itoa(r), func() bool { return last(r).Step == 500 })
		if p := last(r); p.Loss != nil || p.LossIs != job.LossNaN {
			t.Errorf("rank %d: the loss of the last step is %v %q, want nan", r, p.Loss, p.LossIs)
		}
	}
	end()
	wait()
	reported := map[int]bool{}
	for _, e := range g.find(job.KindActivity) {
		for _, a := range e.Activity {
			if reported[a.Rank] = true; a.State != job.ProcessSleeping || a.Idle == nil {
				t.Errorf("%+v, want a rank that slept and had reported a step", a)
			}
		}
	}
	if len(reported) != 2 {
		t.Errorf("activity of %d ranks was reported at the end, want 2", len(reported))
	}
}

// stdin: the chosen rank gets all of standard input, and its end.
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
	// A rank may read nothing, or may end while input is still coming.
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

// logsExist: a log that exists already is not overwritten.
func logsExist(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: []string{"true"}})
	path := filepath.Join(g.attempt.LogDir, job.LogName(1, "out"))
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := g.run(t.Context())
	// The log of a rank on another machine is fetched. Several controllers may fetch it, one after the other. So each
	// of them appends what it fetches.
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
