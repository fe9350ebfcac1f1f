package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

// addVariable names a file. If it is set, the test binary is a writer that adds runs to that file.
const addVariable = "GANGRUN_TEST_HISTORY"

// perWriter is the number of runs that each writer adds.
const perWriter = 20

func TestMain(m *testing.M) {
	path, who, ok := strings.Cut(os.Getenv(addVariable), "\n")
	if !ok {
		os.Exit(m.Run())
	}
	for i := range perWriter {
		e := failed(fmt.Sprintf("%s-%d", who, i), time.Duration(i)*time.Second)
		if err := File(path).Add(context.Background(), e); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

var begun = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

// failed returns a run that failed with a KeyError. It ended at a time after begun.
func failed(run string, after time.Duration) Entry {
	return Entry{Run: run, Ended: begun.Add(after), Name: "digits", Command: []string{"python3", "caf\xe9.py"}, Fingerprint: "f1",
		State: job.StateFailed, ExitCode: 1,
		Failure: Failure{Category: job.SemanticError, Signature: "python-key-error", Rank: 2, Step: 7, Text: "KeyError: '\xff'", Artefact: "a b", Mark: "5 6"}}
}

func add(t *testing.T, f File, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := f.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func names(entries []Entry) (runs []string) {
	for _, e := range entries {
		runs = append(runs, fmt.Sprintf("%s*%d", e.Run, e.Times))
	}
	return runs
}

func TestList(t *testing.T) {
	f := In(filepath.Join(t.TempDir(), "no", "home ?#%"))
	if all, err := f.List(t.Context(), "", 9); err != nil || all == nil || len(all) > 0 {
		t.Fatalf("of no file: %v, %v", all, err)
	}
	if _, err := os.Stat(string(f)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading has made the file: %v", err)
	}
	other, well, nameless := failed("r3", 3*time.Second), failed("r4", 4*time.Second), failed("r5", 5*time.Second)
	other.Signature = "python-type-error"
	well.State, well.ExitCode, well.Failure = job.StateSucceeded, 0, Failure{Rank: -1, Step: 9, Text: "every rank ended well"}
	nameless.Name = ""
	add(t, f, failed("r2", 2*time.Second), failed("r1", time.Second), nameless, other, well)
	all, err := f.List(t.Context(), "", 9)
	if err != nil || !slices.Equal(names(all), []string{"r5*1", "r4*0", "r3*1", "r2*2", "r1*2"}) {
		t.Fatalf("%q, %v", names(all), err)
	}
	want := failed("r1", time.Second)
	want.Times = 2
	got := all[4]
	if !got.Ended.Equal(want.Ended) {
		t.Errorf("ended at %s, want %s", got.Ended, want.Ended)
	}
	if got.Ended = want.Ended; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if some, err := f.List(t.Context(), "digits", 2); err != nil || !slices.Equal(names(some), []string{"r4*0", "r3*1"}) {
		t.Errorf("%q, %v", names(some), err)
	}
	if none, err := f.List(t.Context(), "digit", 2); err != nil || len(none) > 0 {
		t.Errorf("%q, %v", names(none), err)
	}
	again := failed("r1", time.Minute) // as written by a controller that has taken over the run
	again.Signature = "other"
	add(t, f, again)
	if all, err := f.List(t.Context(), "", 9); err != nil || !slices.Equal(names(all), []string{"r1*1", "r5*1", "r4*0", "r3*1", "r2*1"}) {
		t.Errorf("%q, %v", names(all), err)
	}
	if info, err := os.Stat(string(f)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestFailed(t *testing.T) {
	categories := []job.Category{job.IncorrectInputs, job.SemanticError}
	run := func(name string, after time.Duration, change func(*Entry)) Entry {
		e := failed(name, after)
		change(&e)
		return e
	}
	none := func(*Entry) {}
	for name, tt := range map[string]struct {
		runs []Entry
		want string
	}{
		"none":        {nil, ""},
		"one":         {[]Entry{run("r1", 0, none)}, "r1"},
		"the newest":  {[]Entry{run("r2", 2, none), run("r1", 1, none)}, "r2"},
		"another job": {[]Entry{run("r1", 0, func(e *Entry) { e.Fingerprint = "f2" })}, ""},
		"not known":   {[]Entry{run("r1", 0, func(e *Entry) { e.Fingerprint = "" })}, ""},
		"may pass":    {[]Entry{run("r1", 0, func(e *Entry) { e.MayHelp = true })}, ""},
		"other cause": {[]Entry{run("r1", 0, func(e *Entry) { e.Category = job.NetworkError })}, ""},
		"since well":  {[]Entry{run("r1", 0, none), run("r2", 1, func(e *Entry) { e.State, e.Category = job.StateSucceeded, "" })}, ""},
		"before well": {[]Entry{run("r2", 1, none), run("r1", 0, func(e *Entry) { e.State, e.Category = job.StateSucceeded, "" })}, "r2"},
		"cancelled":   {[]Entry{run("r1", 0, none), run("r2", 1, func(e *Entry) { e.State, e.Category = job.StateCancelled, job.Cancelled })}, "r1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := In(t.TempDir())
			add(t, f, tt.runs...)
			e, ok, err := f.Failed(t.Context(), "f1", categories)
			if err != nil || ok != (tt.want != "") || e.Run != tt.want {
				t.Errorf("%q, %v, %v", e.Run, ok, err)
			}
			if _, ok, err := f.Failed(t.Context(), "", categories); ok || err != nil {
				t.Errorf("without a fingerprint: %v, %v", ok, err)
			}
		})
	}
}

// TestWriters lets several processes create the file and add runs at the same time.
func TestWriters(t *testing.T) {
	f := In(t.TempDir())
	const writers = 4
	var all sync.WaitGroup
	for i := range writers {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\nw%d", addVariable, f, i))
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	if got, err := f.List(t.Context(), "", 2*writers*perWriter); err != nil || len(got) != writers*perWriter || got[0].Times != writers*perWriter {
		t.Errorf("%d runs, %v", len(got), err)
	}
}

// TestKept fills the history, and checks which entries are kept.
func TestKept(t *testing.T) {
	f := In(t.TempDir())
	add(t, f, failed("first", 0))
	db, err := f.open(t.Context(), true)
	if err == nil {
		_, err = db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO runs SELECT 'r' || i, ended + i, name, command, fingerprint, state, exit_code, may_help, category, signature, rank, step, text, artefact, mark FROM n, runs`, Kept-1)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	count := func() (int, string) {
		all, err := f.List(t.Context(), "", 2*Kept)
		if err != nil {
			t.Fatal(err)
		}
		return len(all), all[len(all)-1].Run
	}
	if n, oldest := count(); n != Kept || oldest != "first" {
		t.Fatalf("%d runs, the oldest %s", n, oldest)
	}
	add(t, f, failed("last", time.Hour))
	if n, oldest := count(); n != Kept || oldest != "r1" {
		t.Errorf("%d runs, the oldest %s", n, oldest)
	}
}

// TestUnusable tests files that are not a history of this version of gangrun.
func TestUnusable(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(path string) error
		want string
	}{
		"rubbish":   {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("rubbish ", 1000)), 0o600) }, "not a database"},
		"FIFO":      {func(path string) error { return unix.Mkfifo(path, 0o600) }, "FIFO"},
		"directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "directory"},
		"newer": {func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			_, err = db.Exec("PRAGMA user_version = 2")
			return errors.Join(err, db.Close())
		}, "a newer gangrun has made it: its version is 2, and this gangrun knows 1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := In(t.TempDir())
			if err := tt.make(string(f)); err != nil {
				t.Fatal(err)
			}
			_, err := f.List(t.Context(), "", 9)
			for _, err := range []error{err, f.Add(t.Context(), failed("r1", 0))} {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), string(f)) || failure.Hint(err) == "" {
					t.Errorf("%v; hint %q", err, failure.Hint(err))
				}
			}
		})
	}
}

// TestLocked reads and writes while another process holds the lock of the file.
func TestLocked(t *testing.T) {
	f := In(t.TempDir())
	add(t, f, failed("r1", 0))
	db, err := f.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := f.List(t.Context(), "", 9); err != nil || len(all) != 1 {
		t.Errorf("%d runs, %v", len(all), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.Add(ctx, failed("r2", 1)); err == nil {
		t.Error("it has been written")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	add(t, f, failed("r2", 1))
}

func TestUnchanged(t *testing.T) {
	dir := t.TempDir()
	at := func(path string) Failure { return Failure{Artefact: path, Mark: MarkOf(path, dir)} }
	missing, none := at("data.csv"), at("")
	if !missing.Unchanged(dir) || !none.Unchanged(dir) {
		t.Error("changed from the beginning")
	}
	if err := os.WriteFile(filepath.Join(dir, "data.csv"), []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	there := at(filepath.Join(dir, "data.csv"))
	if missing.Unchanged(dir) || !there.Unchanged("/") || !none.Unchanged(dir) {
		t.Errorf("missing %v, there %v", missing.Unchanged(dir), there.Unchanged("/"))
	}
	if err := os.WriteFile(filepath.Join(dir, "data.csv"), []byte("1,2,3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if there.Unchanged(dir) {
		t.Error("a longer file is unchanged")
	}
}
