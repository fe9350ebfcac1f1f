package home_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testexec"
)

// TestMain runs the test binary once more as a run's controller, which lives
// until its stdin ends.
func TestMain(m *testing.M) {
	if os.Getenv(testexec.ChildEnv) != "" {
		os.Stdout.WriteString("ready\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 21, 9, 59, 12, 345, time.UTC)

// create makes a run with the events in its journal.
func create(t testing.TB, dir string, at time.Time, name string, random string, events ...job.Event) home.Run {
	t.Helper()
	run, j, err := home.Create(dir, at, name, []byte("name: x\n"), strings.NewReader(random))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestDir(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ gangrun, xdg, home, want, err string }{
		{"/g", "/x", "/h", "/g", ""},
		{"g/h", "/x", "/h", here + "/g/h", ""},
		{"", "/x", "/h", "/x/gangrun", ""},
		{"", "x", "/h", "/h/.local/state/gangrun", ""},
		{"", "", "/h", "/h/.local/state/gangrun", ""},
		{"", "", "", "", "HOME is set"},
		{"", "x", "", "", "HOME is set"},
		{"", "", "h", "", `HOME is "h"`},
	}
	for _, test := range tests {
		env := map[string]string{"GANGRUN_HOME": test.gangrun, "XDG_STATE_HOME": test.xdg, "HOME": test.home}
		got, err := home.Dir(func(name string) string { return env[name] })
		if got != test.want || (err == nil) != (test.err == "") {
			t.Errorf("Dir in %v is %q (%v), want %q", env, got, err, test.want)
		}
		if err != nil && (!strings.Contains(err.Error(), test.err) || !strings.Contains(failure.Hint(err), "GANGRUN_HOME")) {
			t.Errorf("Dir in %v says %q, hint %q", env, err, failure.Hint(err))
		}
	}
}

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "gangrun")
	run, j, err := home.Create(dir, noon.In(time.FixedZone("", 7200)), "Digits: run #2", []byte("command: [a]\n"), bytes.NewReader([]byte{0x7f, 0x3a}))
	if err != nil {
		t.Fatal(err)
	}
	if want := "20261121-095912-digits-run-2-7f3a"; run.ID != want || run.Dir != filepath.Join(dir, "runs", want) {
		t.Errorf("the run is %+v, want %s", run, want)
	}
	if err := errors.Join(j.Append(job.Event{Kind: job.KindCreated}), j.Close()); err != nil {
		t.Error(err)
	}
	if events, _, err := journal.Replay(run.JournalPath()); err != nil || len(events) != 1 {
		t.Errorf("the journal has %d events (%v), want 1", len(events), err)
	}
	if content, err := os.ReadFile(run.JobPath()); err != nil || string(content) != "command: [a]\n" {
		t.Errorf("the job file is %q (%v)", content, err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Dir(run.Dir): 0o700, run.Dir: 0o700, run.JobPath(): 0o600, run.JournalPath(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("the mode of %s is %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	for number, want := range map[int]string{0: "trial", 1: "1", 12: "12"} {
		logs, err := run.AttemptDir(number)
		if want = filepath.Join(run.Dir, "attempts", want); err != nil || logs != want {
			t.Errorf("attempt %d's directory is %q (%v), want %q", number, logs, err, want)
		}
		if info, err := os.Stat(logs); err != nil || !info.IsDir() {
			t.Errorf("attempt %d has no directory: %v", number, err)
		}
	}
	if run.ReportPath() != filepath.Join(run.Dir, "report.json") {
		t.Errorf("the report is at %q", run.ReportPath())
	}
}

func TestIDs(t *testing.T) {
	dir := t.TempDir()
	form := regexp.MustCompile(`^20261121-095912(-[a-z0-9]+)*-[0-9a-f]{4}$`)
	for i, name := range []string{"", "x", "---", "Ünïcode", "../../etc", strings.Repeat("long-name", 30), "a--b__c", "123"} {
		run := create(t, dir, noon, name, fmt.Sprintf("%02d", i))
		if !form.MatchString(run.ID) || len(run.ID) > 45 || filepath.Dir(run.Dir) != filepath.Join(dir, "runs") {
			t.Errorf("a job named %q gets the run %+v", name, run)
		}
		if found, err := home.Find(dir, run.ID); err != nil || found != run {
			t.Errorf("%q is not found: %+v (%v)", run.ID, found, err)
		}
	}
}

func TestSameIDIsDrawnAgain(t *testing.T) {
	dir := t.TempDir()
	first := create(t, dir, noon, "n", "aa")
	second := create(t, dir, noon, "n", "aaaaaabb")
	if first.ID == second.ID || !strings.HasSuffix(second.ID, "-6262") {
		t.Errorf("two runs are %s and %s", first.ID, second.ID)
	}
	if _, _, err := home.Create(dir, noon, "n", nil, strings.NewReader("aaaa")); err == nil || failure.Hint(err) == "" {
		t.Errorf("a run without random numbers gives %v", err)
	}
}

func TestCreateFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "runs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := home.Create(dir, noon, "n", nil, strings.NewReader("aa"))
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(failure.Hint(err), "GANGRUN_HOME") {
		t.Errorf("error is %v, hint %q", err, failure.Hint(err))
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if _, err := home.Find(dir, "last"); err == nil || !strings.Contains(err.Error(), dir) || failure.Hint(err) == "" {
		t.Errorf("an empty home gives %v", err)
	}
	old := create(t, dir, noon.Add(-24*time.Hour), "digits", "zz")
	// The two runs begin in the same second. The random parts of their names say nothing about their order.
	first, second := create(t, dir, noon, "digits", "zz"), create(t, dir, noon, "digits", "aa")
	younger := noon.Add(time.Second)
	if err := errors.Join(os.Chtimes(first.JobPath(), noon, noon), os.Chtimes(second.JobPath(), younger, younger)); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"20271121-095912-Digits-7a7a", "zzz", "20271121"} {
		if err := os.Mkdir(filepath.Join(dir, "runs", foreign), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "runs", "20271121-095912-digits-7a7a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]home.Run{
		"": second, "last": second, old.ID: old, first.ID: first, "20261120": old, first.ID[:len(first.ID)-1]: first,
	} {
		if got, err := home.Find(dir, text); err != nil || got != want {
			t.Errorf("Find(%q) is %+v (%v), want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string][]string{
		"20261121":           {`"20261121"`, first.ID, second.ID},
		"6161":               {`"6161"`, second.ID},
		"DIGITS":             {`"DIGITS"`, first.ID, second.ID, old.ID},
		"nothing":            {`"nothing"`, first.ID, second.ID, old.ID},
		"../runs/" + old.ID:  {old.ID},
		"20271121-095912-di": {`"20271121-095912-di"`},
	} {
		_, err := home.Find(dir, text)
		if err == nil {
			t.Errorf("Find(%q) finds something", text)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error()+failure.Hint(err), part) {
				t.Errorf("Find(%q) says %q, hint %q, want %q named", text, err, failure.Hint(err), part)
			}
		}
	}
}
