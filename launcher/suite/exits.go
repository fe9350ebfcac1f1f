package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// failures: the exit of every rank is reported exactly.
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

// missing: a rank whose program cannot be started is reported as unstarted.
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

// firstFailure: the first failure ends the gang on every host.
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

// echo: a rank that dies because another rank has failed does not cut off the other rank's output.
func echo(t *testing.T, b Bed) {
	g := b.gang(t, options{ranks: 2, command: sh(`
if [ $RANK = 0 ]; then echo 'RuntimeError: Connection closed by peer [127.0.0.1]:12345' >&2; exit 1; fi
while [ ! -e reported ]; do sleep 0.01; done
echo 'ValueError: the culprit' >&2; exit 1`)})
	wait := g.start(t.Context())
	g.await("the end of rank 0", func() bool { return len(g.find(job.KindExit)) > 0 })
	if err := os.WriteFile(filepath.Join(g.attempt.Workdir, "reported"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := wait()
	if e := exitOf(t, o, 1); e.Stopped || e.Code != 1 || g.log(1, "err") != "ValueError: the culprit\n" {
		t.Errorf("the culprit was cut short: %+v, it wrote %q", e, g.log(1, "err"))
	}
}
