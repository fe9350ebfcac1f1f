package home

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func requestable(t testing.TB) Run {
	t.Helper()
	run, journal, err := Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	return run
}

// requests returns the names of the request files in a run's directory.
func requests(t *testing.T, run Run) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(run.Dir, requestPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestStopRequests(t *testing.T) {
	run := requestable(t)
	me, other := Self(), Self()
	other.Start++ // the same PID, but of an earlier controller
	ask := func(to job.Controller, now bool) AskedStop {
		t.Helper()
		a, err := run.AskStop(StopRequest{To: to, By: Self(), User: "someone", Now: now, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	take := func() []StopRequest {
		t.Helper()
		taken, err := run.TakeStops(me)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	if taken := take(); len(taken) != 0 {
		t.Errorf("took %+v before anybody had asked", taken)
	}
	soft, now, stale := ask(me, false), ask(me, true), ask(other, true)
	for _, path := range requests(t, run) {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	if soft.Taken() || now.Taken() || stale.Taken() {
		t.Error("a request is taken before anybody has looked")
	}
	taken := take()
	if len(taken) != 2 || taken[0].Now == taken[1].Now || taken[0].User != "someone" || taken[0].By != Self() {
		t.Errorf("took %+v", taken)
	}
	if !soft.Taken() || !now.Taken() || stale.Taken() {
		t.Errorf("taken: soft %v, now %v, and that for another %v", soft.Taken(), now.Taken(), stale.Taken())
	}
	if taken := take(); len(taken) != 0 {
		t.Errorf("took %+v twice", taken)
	}
	if back, err := soft.Withdraw(); back || err != nil {
		t.Errorf("what was taken was taken back: %v, %v", back, err)
	}
	if back, err := stale.Withdraw(); !back || err != nil {
		t.Errorf("what nobody has taken is not taken back: %v, %v", back, err)
	}
	withdrawn := ask(me, false)
	if back, err := withdrawn.Withdraw(); !back || err != nil {
		t.Errorf("Withdraw: %v, %v", back, err)
	}
	if taken := take(); len(taken) != 0 {
		t.Errorf("took %+v, which had been withdrawn", taken)
	}
	if left := requests(t, run); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestNoStopRequests(t *testing.T) {
	run := requestable(t)
	name := func(text string) string { return filepath.Join(run.Dir, requestPrefix+text) }
	outside := filepath.Join(t.TempDir(), "outside")
	err := errors.Join(
		os.WriteFile(name("truncated"), []byte(`{"to":{"host"`), 0o600),
		os.WriteFile(name("empty"), nil, 0o600),
		os.WriteFile(name("long"), []byte(strings.Repeat(" ", 2*maxRequest)), 0o600),
		os.WriteFile(outside, []byte(`{}`), 0o600),
		os.Symlink(outside, name("link")),
		os.Mkdir(name("directory"), 0o700),
		os.WriteFile(filepath.Join(run.Dir, "."+requestPrefix+"x.tmp"), []byte(`{}`), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := run.TakeStops(job.Controller{}); err != nil || len(taken) != 0 {
		t.Errorf("took %+v, %v", taken, err)
	}
	if left := requests(t, run); len(left) != 5 {
		t.Errorf("of what is no request there is left %q", left)
	}
	if err := os.RemoveAll(run.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := run.TakeStops(Self()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a run that is gone: %v", err)
	}
	if _, err := run.AskStop(StopRequest{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asked a run that is gone: %v", err)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"to":{"host":"a","boot_id":"b","pid":1,"start":2},"by":{},"user":"u","now":true,"at":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"to":{"pid":"x"}}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "request")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		q, ok := readRequest(path)
		// A request may become longer when it is written again.
		if !ok || q.To == (job.Controller{}) || len(text) > maxRequest/8 {
			return
		}
		run := Run{ID: "run", Dir: filepath.Dir(path)}
		if _, err := run.AskStop(q); err != nil {
			return // JSON has no form for this time
		}
		if taken, err := run.TakeStops(q.To); err != nil || len(taken) != 1 || taken[0].To != q.To || taken[0].Now != q.Now {
			t.Errorf("%+v was taken as %+v, %v", q, taken, err)
		}
	})
}
