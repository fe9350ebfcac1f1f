package home_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

func event(kind job.Kind, change func(*job.Event)) job.Event {
	e := job.Event{Kind: kind, Time: noon}
	change(&e)
	return e
}

func created(c *job.Controller) job.Event {
	return event(job.KindCreated, func(e *job.Event) { e.Controller, e.Spec = c, &job.Spec{Name: "digits", Ranks: 4} })
}

func state(s job.State) job.Event {
	return event(job.KindState, func(e *job.Event) { e.State = s })
}

func attempt(n int) job.Event {
	return event(job.KindAttempt, func(e *job.Event) { e.Attempt = n })
}

func progress(n int, step int64) job.Event {
	return event(job.KindProgress, func(e *job.Event) { e.Attempt, e.Progress = n, &job.Progress{Step: step, Epoch: -1} })
}

func ended(s job.State, code int) job.Event {
	return event(job.KindEnded, func(e *job.Event) { e.State, e.ExitCode, e.Time = s, &code, noon.Add(time.Minute) })
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	if got, err := home.List(dir); err != nil || len(got) != 0 {
		t.Errorf("an empty home lists %v (%v)", got, err)
	}
	self := home.Self()
	dead, kill, reap := controller(t)
	kill()
	reap()
	elsewhere := job.Controller{Host: self.Host + "x", BootID: "b", PID: 1, Start: 1}
	code := 3
	none := []job.Event{}
	tests := []struct {
		name   string
		events []job.Event
		want   home.Summary
	}{
		{"preflight", []job.Event{created(&self)}, home.Summary{State: job.StatePreflight, Step: -1, Controller: &self}},
		{"waiting", []job.Event{created(&self), progress(0, 7), state(job.StateWaiting)}, home.Summary{State: job.StateWaiting, Step: -1, Controller: &self}},
		{"running", []job.Event{created(&self), attempt(1), state(job.StateRunning), progress(1, 5), progress(1, 9), progress(1, 8)},
			home.Summary{State: job.StateRunning, Attempts: 1, Step: 9, Controller: &self}},
		{"second attempt", []job.Event{created(&self), attempt(1), progress(1, 9), attempt(2), state(job.StateLaunching), progress(1, 10)},
			home.Summary{State: job.StateLaunching, Attempts: 2, Step: -1, Controller: &self}},
		{"stopping", []job.Event{created(&self), attempt(1), state(job.StateStopping), progress(1, 9)},
			home.Summary{State: job.StateStopping, Attempts: 1, Step: 9, Controller: &self}},
		{"ended", []job.Event{created(&dead), attempt(1), progress(1, 9), ended(job.StateFailed, 3)},
			home.Summary{State: job.StateFailed, Attempts: 1, Step: 9, ExitCode: &code, Ended: noon.Add(time.Minute), Controller: &dead}},
		{"lost", []job.Event{created(&dead), attempt(1), state(job.StateRunning)},
			home.Summary{State: job.StateLost, Attempts: 1, Step: -1, Controller: &dead}},
		{"handed over", []job.Event{created(&dead), event(job.KindState, func(e *job.Event) { e.State, e.Controller = job.StateWaiting, &self })},
			home.Summary{State: job.StateWaiting, Step: -1, Controller: &self}},
		{"elsewhere", []job.Event{created(&elsewhere), state(job.StateRunning)},
			home.Summary{State: job.StateRunning, Step: -1, Controller: &elsewhere}},
		{"no event yet", none, home.Summary{State: job.StatePreflight, Step: -1}},
		{"event of the future", []job.Event{created(&self), {Kind: "future", Text: "x"}}, home.Summary{State: job.StatePreflight, Step: -1, Controller: &self}},
	}
	var want []home.Summary
	for i, test := range tests {
		run := create(t, dir, time.Now().Add(time.Duration(i-len(tests))*time.Second), test.name, "ab", test.events...)
		s := test.want
		s.Run, s.Dir = run.ID, run.Dir
		if len(test.events) > 0 {
			s.Name, s.Ranks, s.Started = "digits", 4, noon
		}
		want = append([]home.Summary{s}, want...)
	}
	got, err := home.List(dir)
	if err != nil || len(got) != len(want) {
		t.Fatalf("List gives %d runs (%v), want %d", len(got), err, len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("run %s is %s, want %s", want[i].Run, dump(got[i]), dump(want[i]))
		}
	}
}

func dump(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestListAmongForeignThings(t *testing.T) {
	dir := t.TempDir()
	self := home.Self()
	good := create(t, dir, noon, "good", "ab", created(&self))
	half := filepath.Join(dir, "runs", "20200101-000000-half-0000")
	truncated := create(t, dir, noon.Add(-time.Hour), "truncated", "ab")
	unreadable := create(t, dir, noon.Add(-2*time.Hour), "unreadable", "ab", created(&self))
	old := time.Now().Add(-time.Hour)
	for _, err := range []error{
		os.Mkdir(half, 0o700), os.Chtimes(half, old, old),
		os.WriteFile(truncated.JournalPath(), []byte("\x00\x00\nnot json\n"+dump(created(&self))+"\n"+`{"kind":"en`), 0o600),
		// A directory in place of the journal cannot be read, not even by root.
		os.Remove(unreadable.JournalPath()), os.Mkdir(unreadable.JournalPath(), 0o700),
		os.Mkdir(filepath.Join(dir, "runs", ".git"), 0o700),
		os.Mkdir(filepath.Join(dir, "runs", "20200101-000000-x"), 0o700),
		os.WriteFile(filepath.Join(dir, "runs", "20200101-000000-file-0000"), []byte("x"), 0o600),
		os.Symlink(good.Dir, filepath.Join(dir, "runs", "20200101-000000-link-0000")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := home.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range got {
		lines = append(lines, fmt.Sprintf("%s %s %v", s.Run, s.State, s.Problem != ""))
	}
	want := []string{
		good.ID + " preflight false", truncated.ID + " preflight false", unreadable.ID + "  true", filepath.Base(half) + " lost false",
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("List gives %q, want %q", lines, want)
	}
}

func TestUnreadableHome(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "runs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := home.List(dir); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v, want one that names the directory", err)
	}
}

// TestLongJournal checks that it is enough to read the beginning and the end of a journal.
func TestLongJournal(t *testing.T) {
	dir := t.TempDir()
	self := home.Self()
	long := func(events ...job.Event) []job.Event {
		all := []job.Event{created(&self), state(job.StateLaunching), attempt(1)}
		for step := range int64(3000) {
			all = append(all, progress(1, step))
		}
		return append(all, events...)
	}
	huge := event(job.KindOutcome, func(e *job.Event) {
		e.Attempt, e.Outcome = 2, &job.Outcome{Exits: make([]job.Exit, 5000)}
	})
	for i, test := range []struct {
		events []job.Event
		want   string
	}{
		{long(), "running 1 2999"},
		{long(state(job.StateStopping)), "stopping 1 2999"},
		{long(state(job.StateLaunching), attempt(2)), "launching 2 -1"},
		{long(state(job.StateLaunching), attempt(2), progress(2, 1), ended(job.StateSucceeded, 0)), "succeeded 2 1"},
		{long(attempt(2), huge), "running 2 -1"},
		{long(attempt(2), progress(2, 4), huge, ended(job.StateFailed, 1)), "failed 2 4"},
		{append([]job.Event{huge, huge}, long(huge)...), "launching 2 -1"},
	} {
		run := create(t, dir, noon.Add(time.Duration(i)*time.Second), "long", "ab", test.events...)
		info, err := os.Stat(run.JournalPath())
		if err != nil || info.Size() < 256<<10 {
			t.Fatalf("the journal has %d bytes (%v), which tests nothing", info.Size(), err)
		}
		s, err := run.Summary()
		got := fmt.Sprintf("%s %d %d", s.State, s.Attempts, s.Step)
		// The step may be missing if it is in a line before a huge line.
		if got != test.want && !(i == 5 && got == "failed 2 -1") || err != nil || s.Name != "digits" {
			t.Errorf("run %d is %s (%v), want %s", i, got, err, test.want)
		}
	}
}

// TestRanksAsPlaced checks that an elastic gang has the size of its latest placement.
func TestRanksAsPlaced(t *testing.T) {
	dir := t.TempDir()
	placed := func(number, ranks int) job.Event {
		return event(job.KindPlaced, func(e *job.Event) {
			e.Attempt, e.Placement = number, &job.Placement{Ranks: make([]job.Rank, ranks)}
		})
	}
	elastic := event(job.KindCreated, func(e *job.Event) { e.Spec = &job.Spec{Ranks: 16, MinRanks: 4} })
	var long []job.Event
	for step := range int64(3000) {
		long = append(long, progress(1, step))
	}
	for i, test := range []struct {
		events []job.Event
		want   int
	}{
		{[]job.Event{elastic}, 16},
		{[]job.Event{elastic, placed(0, 1)}, 16}, // the placement of the trial does not count
		{[]job.Event{elastic, placed(1, 12), attempt(1)}, 12},
		{[]job.Event{elastic, placed(1, 12), attempt(1), placed(2, 8), attempt(2)}, 8},
		{slices.Concat([]job.Event{elastic}, long[:1000], []job.Event{placed(1, 12), attempt(1)}, long), 12},
	} {
		run := create(t, dir, noon.Add(time.Duration(i)*time.Second), "size", "ab", test.events...)
		if s, err := run.Summary(); err != nil || s.Ranks != test.want {
			t.Errorf("run %d has %d ranks (%v), want %d", i, s.Ranks, err, test.want)
		}
	}
}

// TestLastWords checks that a run that ends while it is being listed does not count as lost.
func TestLastWords(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		c, kill, reap := controller(t)
		run := create(t, dir, noon.Add(time.Duration(i)*time.Second), "last", "ab", created(&c), state(job.StateRunning))
		done := make(chan error, 1)
		go func() {
			file, err := os.OpenFile(run.JournalPath(), os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = file.WriteString(dump(ended(job.StateSucceeded, 0)) + "\n")
				err = errors.Join(err, file.Close())
			}
			kill()
			reap()
			done <- err
		}()
		for begun := time.Now(); ; {
			s, err := run.Summary()
			if err != nil || s.State == job.StateLost || time.Since(begun) > time.Minute {
				t.Fatalf("state is %q (%v)", s.State, err)
			}
			if s.State == job.StateSucceeded {
				break
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	random, err := os.Open("/dev/urandom")
	if err != nil {
		b.Fatal(err)
	}
	defer random.Close()
	for i := 0; b.Loop(); i++ {
		_, j, err := home.Create(dir, noon.Add(time.Duration(i)*time.Second), "bench", []byte("name: x\n"), random)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		j.Close()
		b.StartTimer()
	}
}

// BenchmarkList lists 300 runs, most of them long.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	self := home.Self()
	var events []job.Event
	for step := range int64(5000) {
		events = append(events, progress(1, step))
	}
	run := create(b, dir, noon, "bench", "ab", append([]job.Event{created(&self), attempt(1)}, events...)...)
	content, err := os.ReadFile(run.JournalPath())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		other := create(b, dir, noon.Add(time.Duration(i)*time.Second), "bench", "cd")
		if err := os.WriteFile(other.JournalPath(), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if all, err := home.List(dir); err != nil || len(all) != 301 {
			b.Fatal(len(all), err)
		}
	}
}
