package home

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	if info, err := lock.File.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the lock has mode %v, %v", info.Mode(), err)
	}
	if _, err := run.Control(Self()); !errors.Is(err, ErrControlled) {
		t.Errorf("a second controller got %v", err)
	}
	if c := run.controller(); c == nil || *c != long {
		t.Errorf("controller %+v, want %+v", c, long)
	}

	// A process that has inherited the lock holds it as long as it lives.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	heir := exec.Command("cat")
	heir.Stdin, heir.ExtraFiles = r, []*os.File{lock.File}
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
	lock, err = run.Control(Self()) // the failed attempt has left nothing
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if c := run.controller(); c == nil || *c != Self() {
		t.Errorf("controller %+v, want %+v", c, Self())
	}
}

// TestTakeOver checks that a process that takes a run over is the controller only until it closes the Control. If it
// calls Keep, it stays the controller.
func TestTakeOver(t *testing.T) {
	far := job.Controller{Host: "elsewhere", BootID: "b", PID: 1, Start: 1}
	gone := Self()
	gone.Start++
	for name, before := range map[string]string{
		"a controller elsewhere": `{"host":"elsewhere","boot_id":"b","pid":1,"start":1}` + "\n",
		"none":                   "",
		"unreadable":             "no JSON at all, and longer than what is written over it: " + strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			run, journal, err := Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			path := filepath.Join(run.Dir, controlName)
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			was := run.controller()
			if name == "a controller elsewhere" && (was == nil || *was != far) || name != "a controller elsewhere" && was != nil {
				t.Fatalf("the controller was %+v", was)
			}

			control, err := run.TakeOver(Self())
			if err != nil {
				t.Fatal(err)
			}
			if c := run.controller(); c == nil || *c != Self() {
				t.Errorf("while the run is being taken over its controller is %+v", c)
			}
			if _, err := run.TakeOver(Self()); !errors.Is(err, ErrControlled) {
				t.Errorf("another got %v", err)
			}
			if err := control.Close(); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != before {
				t.Errorf("it was not kept, and the file holds %q, %v", text, err)
			}

			// A process that is killed in between cannot restore the former controller itself.
			if control, err = run.TakeOver(gone); err != nil {
				t.Fatal(err)
			}
			if err := control.File.Close(); err != nil {
				t.Fatal(err)
			}
			if c := run.controller(); (c == nil) != (was == nil) || c != nil && *c != *was {
				t.Errorf("after a kill the controller is %+v, want %+v", c, was)
			}

			if control, err = run.TakeOver(Self()); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(control.Keep(), control.Close()); err != nil {
				t.Fatal(err)
			}
			if c := run.controller(); c == nil || *c != Self() {
				t.Errorf("after the takeover the controller is %+v", c)
			}
		})
	}
}

// TestSummaryController checks that a run that was taken over counts as live, however much its journal has grown since
// then.
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
