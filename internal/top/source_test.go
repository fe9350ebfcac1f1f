package top

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSource: a source shows the changes in a run's files. It does not use the controller's clock.
func TestSource(t *testing.T) {
	run, journal, err := home.Create(t.TempDir(), time.Now(), "", nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	self := home.Self()
	control, err := run.Control(self)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	add := func(e job.Event) {
		t.Helper()
		e.Time = time.Now()
		if err := journal.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	add(job.Event{Kind: job.KindCreated, Run: run.ID, Controller: &self, Spec: &job.Spec{Ranks: 1}})
	add(job.Event{Kind: job.KindPlaced, Attempt: 1, Placement: &job.Placement{Ranks: []job.Rank{{Rank: 0, Host: "h1"}}}})
	add(job.Event{Kind: job.KindState, State: job.StateRunning})
	text, err := json.Marshal(vitals.Vitals{
		Attempt: 1, At: time.Now().Add(-time.Hour), Every: job.Duration(2 * time.Second),
		Ranks: []vitals.Rank{{Rank: 0, Host: "h1", State: job.ProcessStopped}},
	})
	if err == nil {
		err = run.WriteVitals(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(run)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { s.Follow(ctx) })
	comes := func(what string, ok func(Data) bool) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !ok(s.Data(time.Now())); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Errorf("%s is not shown, but %+v", what, s.Data(time.Now()))
				return
			}
		}
	}
	comes("the stopped rank", func(d Data) bool {
		return d.State == job.StateRunning && d.Hosts == 1 && d.Gang != nil && d.Now[0].Doing() == "stopped" && d.Trouble == ""
	})
	if d := s.Data(time.Now().Add(10 * time.Minute)); !strings.HasPrefix(d.Trouble, "these figures are ") || !strings.HasSuffix(d.Trouble, " old") {
		t.Errorf("when nobody writes the file: %q", d.Trouble)
	}
	add(job.Event{Kind: job.KindEnded, State: job.StateSucceeded})
	comes("the end", func(d Data) bool { return d.State == job.StateSucceeded && d.Gang == nil && d.Trouble == "" })
	cancel()
	following.Wait()
}

// TestRemoved: a source reports that the directory of the run was removed.
func TestRemoved(t *testing.T) {
	s := newSource(home.Run{ID: "x", Dir: t.TempDir() + "/gone"})
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { s.Follow(ctx) })
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if d := s.Data(time.Now()); strings.Contains(d.Trouble, "was removed") {
			break
		}
		if time.Now().After(limit) {
			t.Error("it is not told")
			break
		}
	}
	cancel()
	following.Wait()
}
