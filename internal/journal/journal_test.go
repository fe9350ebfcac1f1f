package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
)

func create(t testing.TB) (*journal.Journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := journal.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return j, path
}

// replayed returns the events of the journal at path as JSON, and the number of skipped lines.
func replayed(t testing.TB, path string) ([]string, int) {
	t.Helper()
	events, skipped, err := journal.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = text(t, e)
	}
	return all, skipped
}

func text(t testing.TB, e job.Event) string {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReplayOldStops checks that stop events of old versions of gangrun, which have only a text, get the reason that
// the text gives.
func TestReplayOldStops(t *testing.T) {
	for text, want := range map[string]job.StopReason{
		"gangrun was told to end the gang":                      job.StopOrder,
		"gangrun was told to end the gang: cancelled by SIGINT": job.StopOrder,
		"gangrun was told to end the gang at once":              job.StopHurry,
		"rank 2 on h1 exited with code 1":                       job.StopFailure,
		"the lease was lost: the lock file is gone":             job.StopFailure,
		"": job.StopFailure,
	} {
		for stop, want := range map[job.StopReason]job.StopReason{"": want, job.StopFailure: job.StopFailure, job.StopHurry: job.StopHurry} {
			j, path := create(t)
			if err := j.Append(job.Event{Kind: job.KindStop, Stop: stop, Text: text}); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if events, _, err := journal.Replay(path); err != nil || len(events) != 1 || events[0].Stop != want || events[0].Text != text {
				t.Errorf("%q with %q: %+v, %v; want %q", stop, text, events, err, want)
			}
		}
	}
}

func TestAppendAndReplay(t *testing.T) {
	j, path := create(t)
	code, loss := 3, 0.25
	events := []job.Event{
		{Kind: job.KindCreated, Run: "r", Controller: &job.Controller{Host: "h", PID: 7, Start: 8}, Spec: &job.Spec{Command: []string{"a b", "<&>\u2028"}}},
		{Kind: job.KindProgress, Rank: 2, Progress: &job.Progress{Step: 4, Epoch: -1, Loss: &loss}},
		{Kind: job.KindOutcome, Attempt: 1, Outcome: &job.Outcome{Exits: []job.Exit{{Rank: 1, Status: job.Signalled, Signal: 9}}}},
		{Kind: job.KindCause, Attempt: 1, Cause: &job.Cause{Rank: -1, Evidence: []job.Line{{Text: "line\nbreak"}}}},
		{Kind: job.KindEnded, State: job.StateFailed, ExitCode: &code},
	}
	var want []string
	for i := range events {
		events[i].Time = numbered(i).Time
		want = append(want, text(t, events[i]))
		if err := j.Append(events[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, skipped := replayed(t, path) // the journal is still open
	if strings.Join(got, "\n") != strings.Join(want, "\n") || skipped != 0 {
		t.Errorf("replayed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v (%v), want 0600", info.Mode(), err)
	}
}

func TestCreateKeepsAnOldJournal(t *testing.T) {
	j, path := create(t)
	if err := errors.Join(j.Append(numbered(1)), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second Create says %v, want fs.ErrExist", err)
	}
	if got, _ := replayed(t, path); len(got) != 1 {
		t.Errorf("replayed %d events, want 1", len(got))
	}
}

func TestOpenClosesATornLineOff(t *testing.T) {
	whole := text(t, numbered(1)) + "\n"
	tests := []struct {
		name, before      string
		events, truncated int
	}{
		{"empty", "", 1, 0},
		{"whole lines", whole, 2, 0},
		{"truncated", whole + `{"time":"2026-`, 2, 1},
		{"truncated just before its end", whole + strings.TrimSuffix(whole, "\n"), 3, 0},
		{"truncated only", `{`, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.jsonl")
			if err := os.WriteFile(path, []byte(test.before), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := journal.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.Append(numbered(2)), j.Close()); err != nil {
				t.Fatal(err)
			}
			got, skipped := replayed(t, path)
			if len(got) != test.events || skipped != test.truncated {
				t.Fatalf("replayed %d events and skipped %d lines, want %d and %d", len(got), skipped, test.events, test.truncated)
			}
			if last := got[len(got)-1]; last != text(t, numbered(2)) {
				t.Errorf("the last event is %s", last)
			}
		})
	}
}

func TestOpenMissing(t *testing.T) {
	if _, err := journal.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want fs.ErrNotExist", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	j, path := create(t)
	var all sync.WaitGroup
	for rank := range 8 {
		all.Go(func() {
			for step := range 100 {
				kind := job.KindProgress
				if step%10 == 0 {
					kind = job.KindVerdict
				}
				if err := j.Append(job.Event{Kind: kind, Rank: rank, PID: step}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	events, skipped, err := journal.Replay(path)
	if err != nil || skipped != 0 || len(events) != 800 {
		t.Fatalf("replayed %d events, skipped %d lines (%v), want 800 and 0", len(events), skipped, err)
	}
	next := map[int]int{}
	for _, e := range events {
		if e.PID != next[e.Rank] {
			t.Fatalf("rank %d's event %d stands where %d should", e.Rank, e.PID, next[e.Rank])
		}
		next[e.Rank]++
	}
}

func TestAppendRefusesWhatCannotBeALine(t *testing.T) {
	j, path := create(t)
	if err := j.Append(job.Event{Kind: job.KindNote, Text: strings.Repeat("x", journal.MaxLine)}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("an overlong event gives %v, want an error that names the file", err)
	}
	if err := errors.Join(j.Append(numbered(1)), j.Close()); err != nil {
		t.Error(err)
	}
	if got, skipped := replayed(t, path); len(got) != 1 || skipped != 0 {
		t.Errorf("replayed %d events and skipped %d lines, want 1 and 0", len(got), skipped)
	}
}

func TestClosed(t *testing.T) {
	j, path := create(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Append": j.Append(numbered(1)), "Sync": j.Sync(), "Close": j.Close()} {
		if !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s after Close gives %v, want os.ErrClosed with the path", what, err)
		}
	}
}

// TestDamage checks that damaged lines do not affect the other lines.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var content strings.Builder
		var want []int
		bad := 0
		for i := range rapid.IntRange(0, 20).Draw(t, "lines") {
			e := job.Event{Kind: "kind-of-the-future", Rank: i + 1}
			line, _ := json.Marshal(e)
			switch rapid.IntRange(0, 3).Draw(t, "damage") {
			case 0: // truncated, and then ended by a newline
				content.Write(line[:rapid.IntRange(1, len(line)-1).Draw(t, "cut")])
				bad++
			case 1: // part of a disk block that was never written
				content.WriteString(strings.Repeat("\x00", rapid.IntRange(1, 9000).Draw(t, "zeros")))
				bad++
			default:
				content.WriteString(strings.Replace(string(line), "{", `{"field_of_the_future":[{}],`, 1))
				want = append(want, e.Rank)
			}
			content.WriteByte('\n')
		}
		content.WriteString(rapid.SampledFrom([]string{"", "{", `{"kind":"no`, "\x00\x00"}).Draw(t, "tail"))
		var got []int
		skipped, err := journal.Scan(strings.NewReader(content.String()), func(e job.Event) bool {
			got = append(got, e.Rank)
			return true
		})
		if err != nil || skipped != bad || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("read %v, skipped %d (%v), want %v and %d, of %q", got, skipped, err, want, bad, content.String())
		}
	})
}

func TestLongLines(t *testing.T) {
	const open, end = `{"kind":"note","text":"`, `"}` + "\n"
	xs := strings.Repeat("x", 1<<16)
	line := func(bytes int) io.Reader {
		return io.MultiReader(strings.NewReader(open),
			io.LimitReader(forever(xs), int64(bytes-len(open)-len(end))), strings.NewReader(end))
	}
	truncated := io.LimitReader(line(journal.MaxLine+2), journal.MaxLine+1)
	var got []int
	skipped, err := journal.Scan(io.MultiReader(line(100), line(journal.MaxLine), line(journal.MaxLine+1), line(101), truncated), func(e job.Event) bool {
		got = append(got, len(open)+len(e.Text)+len(end))
		return true
	})
	if want := []int{100, journal.MaxLine, 101}; fmt.Sprint(got) != fmt.Sprint(want) || skipped != 1 || err != nil {
		t.Errorf("read lines of %v bytes, skipped %d (%v), want %v and 1", got, skipped, err, want)
	}
}

// forever is a reader that repeats a text without end.
type forever string

func (f forever) Read(p []byte) (int, error) { return copy(p, f), nil }

func TestScanStops(t *testing.T) {
	content := strings.Repeat(text(t, numbered(1))+"\n", 10)
	n := 0
	if _, err := journal.Scan(strings.NewReader(content), func(job.Event) bool { n++; return n < 3 }); n != 3 || err != nil {
		t.Errorf("emit was called %d times (%v), want 3", n, err)
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte(text(f, numbered(3)) + "\n" + text(f, numbered(4)) + "\n"))
	f.Add([]byte(`{"kind":"cause","cause":{"category":null,"rank":null}}` + "\n{}\nnull\n[]\n\n\x00\n"))
	f.Add([]byte(`{"time":"x","kind":"note"}` + "\n" + `{"kind":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan := func(data []byte) (events []string, skipped int) {
			skipped, err := journal.Scan(bytes.NewReader(data), func(e job.Event) bool {
				events = append(events, text(t, e))
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			return events, skipped
		}
		before, skipped := scan(data)
		// A new writer, as in Open, must not lose anything that could be read.
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		after, more := scan(append(data, text(t, numbered(5))+"\n"...))
		want := append(before, text(t, numbered(5)))
		if strings.Join(after, "\n") != strings.Join(want, "\n") || more < skipped || more > skipped+1 {
			t.Errorf("replayed %q, skipped %d; want %q, and %d or one more", after, more, want, skipped)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, kind := range []job.Kind{job.KindProgress, job.KindAttempt, job.KindEnded} {
		b.Run(string(kind), func(b *testing.B) {
			j, _ := create(b)
			for b.Loop() {
				if err := j.Append(job.Event{Time: numbered(1).Time, Kind: kind, Rank: 3, Progress: &job.Progress{Step: 7}}); err != nil {
					b.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLaunch measures what a launch waits for: a new journal, and the events up to the start of the gang.
func BenchmarkLaunch(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		j, err := journal.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			b.Fatal(err)
		}
		for _, kind := range []job.Kind{job.KindCreated, job.KindState, job.KindPlaced, job.KindAttempt, job.KindState} {
			if err := j.Append(job.Event{Kind: kind, Time: numbered(1).Time}); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkReplay(b *testing.B) {
	j, path := create(b)
	for i := range 10000 {
		if err := j.Append(job.Event{Kind: job.KindProgress, Rank: i, Progress: &job.Progress{Step: 7}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, _, err := journal.Replay(path); err != nil {
			b.Fatal(err)
		}
	}
}
