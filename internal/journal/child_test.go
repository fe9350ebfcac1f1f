package journal_test

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testexec"
)

// TestMain runs the tests. If GANGRUN_TEST_CHILD is set, it instead acts as a writer that the test kills, or whose
// disk is full.
func TestMain(m *testing.M) {
	path := os.Getenv("GANGRUN_TEST_PATH")
	switch os.Getenv(testexec.ChildEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "forever":
		appendForever(path)
	case "full":
		appendPastTheLimit(path)
	}
}

// numbered returns the i-th event of a test. The lengths of the events differ much.
func numbered(i int) job.Event {
	return job.Event{
		Time: time.Date(2026, 11, 21, 9, 59, 12, i, time.UTC),
		Kind: job.KindNote, Rank: i, Text: strings.Repeat("text ", i%7*i%1000),
	}
}

// appendForever appends events to the journal at path, and prints how many it has appended. It ends after a thousand
// events, because the process that should kill it may stand still.
func appendForever(path string) {
	events, _, err := journal.Replay(path)
	fatal(err)
	j, err := journal.Open(path)
	fatal(err)
	for i := range 1000 {
		fatal(j.Append(numbered(len(events) + i)))
		fmt.Println(len(events) + i)
	}
	time.Sleep(time.Hour)
}

// TestKilledWriter kills a writer again and again. The journal must have everything that the writer had appended, and
// the next writer must be able to continue it.
func TestKilledWriter(t *testing.T) {
	path := t.TempDir() + "/journal.jsonl"
	j, err := journal.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		cmd := testexec.Child(t, "forever", "GANGRUN_TEST_PATH="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := -1
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if said, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if n == 50 {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		events, _, err := journal.Replay(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) <= said {
			t.Fatalf("the journal has %d events, but number %d had been appended", len(events), said)
		}
		for i, e := range events {
			if want := numbered(i); e.Rank != want.Rank || e.Text != want.Text || !e.Time.Equal(want.Time) {
				t.Fatalf("event %d is %+v, want %+v", i, e, want)
			}
		}
	}
}

// appendPastTheLimit appends to a file with a limited size. The limit cuts a line, as a full disk does. It then lifts
// the limit and appends again.
func appendPastTheLimit(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	j, err := journal.Create(path)
	fatal(err)
	limit := func(n uint64) {
		fatal(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: 1 << 40}))
	}
	limit(10000)
	for i := range 300 {
		if err := j.Append(numbered(i)); err != nil && strings.Contains(err.Error(), path) {
			fmt.Println(i)
		}
		if i == 200 {
			limit(1 << 30)
		}
	}
	fatal(j.Close())
}

func TestFullDisk(t *testing.T) {
	path := t.TempDir() + "/journal.jsonl"
	out, err := testexec.Child(t, "full", "GANGRUN_TEST_PATH="+path).Output()
	if err != nil {
		t.Fatal(err)
	}
	failed := strings.Fields(string(out))
	if len(failed) == 0 || failed[len(failed)-1] != "200" {
		t.Errorf("Append failed for the events %q, want the last ones up to 200", failed)
	}
	events, skipped, err := journal.Replay(path)
	if err != nil || skipped != 0 || len(events) != 300 {
		t.Fatalf("the journal has %d events and %d lines that cannot be read (%v), want 300 and 0", len(events), skipped, err)
	}
	for i, e := range events {
		if e.Rank != i {
			t.Fatalf("event %d is number %d", i, e.Rank)
		}
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
