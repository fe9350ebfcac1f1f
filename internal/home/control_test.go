package home

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestControl(t *testing.T) {
	run, journal, err := Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	if c := run.controller(); c != nil {
		t.Errorf("controller %+v before there is one", c)
	}
	controlled := func(when string, want, wantKnown bool) {
		t.Helper()
		if got, known := run.Controlled(); got != want || known != wantKnown {
			t.Errorf("%s it is controlled: %v, known: %v", when, got, known)
		}
	}
	controlled("before anybody was", false, false)
	long := job.Controller{Host: "a-host-with-a-long-name", BootID: "b", PID: 4_000_000, Start: 1 << 60}
	lock, err := run.Control(long)
	if err != nil {
		t.Fatal(err)
	}
	controlled("with a controller", true, true)
	if info, err := lock.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the lock has mode %v, %v", info.Mode(), err)
	}
	if err := Disown(lock, Self()); err != nil || *run.controller() != Self() {
		t.Errorf("it was given back to %+v, %v", run.controller(), err)
	}
	controlled("when it was given back", true, true)
	if err := Disown(lock, long); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Control(Self()); !errors.Is(err, ErrControlled) {
		t.Errorf("a second controller got %v", err)
	}
	if c := run.controller(); c == nil || *c != long {
		t.Errorf("controller %+v, want %+v", c, long)
	}

	// Who has inherited it holds it for as long as it lives.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	heir := exec.Command("cat")
	heir.Stdin, heir.ExtraFiles = r, []*os.File{lock}
	if err := errors.Join(heir.Start(), r.Close(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Control(Self()); !errors.Is(err, ErrControlled) {
		t.Errorf("while an heir lives: %v", err)
	}
	if err := errors.Join(w.Close(), heir.Wait()); err != nil {
		t.Fatal(err)
	}
	controlled("after its end", false, true)
	lock, err = run.Control(Self()) // the look has left nothing
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if c := run.controller(); c == nil || *c != Self() {
		t.Errorf("controller %+v, want %+v", c, Self())
	}
}

// TestSummaryController: a run that was taken over is up, however long its journal
// has grown since.
func TestSummaryController(t *testing.T) {
	run, journal, err := Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	add := func(e job.Event) {
		t.Helper()
		if e.Time = time.Now(); journal.Append(e) != nil {
			t.Fatal("the journal cannot be written")
		}
	}
	state := func() job.State {
		t.Helper()
		s, err := run.Summary()
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	gone, self := Self(), Self()
	gone.Start++
	add(job.Event{Kind: job.KindCreated, Run: run.ID, Controller: &gone, Spec: &job.Spec{Ranks: 2}})
	progress := func(n int) {
		for i := range n {
			add(job.Event{Kind: job.KindProgress, Attempt: 1, Progress: &job.Progress{Step: int64(i)}})
		}
	}
	progress(2000)
	if s := state(); s != job.StateLost {
		t.Errorf("without a controller it is %s", s)
	}
	lock, err := run.Control(self)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	add(job.Event{Kind: job.KindAttached, Controller: &self})
	progress(2000)
	if s := state(); s != job.StateRunning {
		t.Errorf("with another controller it is %s", s)
	}
}
