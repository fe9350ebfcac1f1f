package gang

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

func TestStartCode(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "execute", Path: "/x", Err: err} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{at(unix.ENOENT), 127},
		{at(unix.ENOTDIR), 127},
		{at(fs.ErrNotExist), 127},
		{at(unix.EACCES), 126},
		{at(unix.EPERM), 126},
		{at(unix.EISDIR), 126},
		{at(unix.ENOEXEC), 126},
		{at(unix.ENOMEM), 0},
		{at(unix.EAGAIN), 0},
		{errors.New("the agent is ending"), 0},
	} {
		if got := StartCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
	if got := Describe("./train", at(unix.ENOEXEC)); !strings.HasPrefix(got, `"./train" is no program that this host can execute`) {
		t.Errorf("says %q", got)
	}
	if got := Describe("./train", at(unix.ENOENT)); got != "execute /x: no such file or directory" {
		t.Errorf("says %q", got)
	}
}

func TestRankExit(t *testing.T) {
	at := time.Unix(1000, 5)
	for _, c := range []struct {
		name   string
		status unix.WaitStatus
		want   job.Exit
	}{
		{"well", 0, job.Exit{Status: job.Exited}},
		{"code", 3 << 8, job.Exit{Status: job.Exited, Code: 3}},
		{"largest code", 255 << 8, job.Exit{Status: job.Exited, Code: 255}},
		{"killed", 9, job.Exit{Status: job.Signalled, Signal: 9}},
		{"core", 11 | 0x80, job.Exit{Status: job.Signalled, Signal: 11, Core: true}},
	} {
		for _, stopped := range []bool{false, true} {
			child := &process.Child{PID: 42, Status: c.status, When: at}
			want := c.want
			want.Rank, want.Host, want.Time, want.PID, want.Stopped = 3, "h1", at, 42, stopped
			if got := exitOf(3, child, "h1", stopped); got != want {
				t.Errorf("%s: got %+v, want %+v", c.name, got, want)
			}
		}
	}
}

// descriptors returns the number of open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// newRankCases are the ways in which the streams of a rank can be opened.
var newRankCases = []struct {
	name   string
	feeds  bool
	stdout output.Opener
}{
	{"no stdin, a pipe", false, output.OpenPipe}, {"no stdin, a terminal", false, output.OpenPTY},
	{"stdin, a pipe", true, output.OpenPipe}, {"stdin, a terminal", true, output.OpenPTY},
}

// TestNewRankCleansUp checks that a rank whose logs cannot be created leaves no descriptor open and no new file.
// Existing files must not change.
func TestNewRankCleansUp(t *testing.T) {
	if !agenttest.Alone(t) { // no other test may open descriptors meanwhile
		return
	}
	for _, c := range newRankCases {
		for _, there := range []string{"rank-0003.out", "rank-0003.err"} {
			dir := t.TempDir()
			agenttest.WriteFile(t, filepath.Join(dir, there), "mine", 0o644)
			before := descriptors(t)
			if _, _, err := newRank(3, dir, c.feeds, c.stdout, noOptions); !errors.Is(err, fs.ErrExist) {
				t.Errorf("with %s there: got %v, want that it exists", there, err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("with %s there: %d descriptors were open before, %d are after", there, before, after)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != there {
				t.Errorf("with %s there: the directory holds %v, %v", there, entries, err)
			}
		}
		if _, _, err := newRank(3, filepath.Join(t.TempDir(), "absent"), c.feeds, c.stdout, noOptions); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in no directory: got %v, want that it does not exist", err)
		}
	}
}

// TestNewRankWithoutDescriptors checks that a rank is refused if the descriptors run out, whichever file cannot be
// opened.
func TestNewRankWithoutDescriptors(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, c := range newRankCases {
		for free := range uint64(7) {
			before := descriptors(t)
			lowest, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			_ = unix.Close(lowest)
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(lowest) + free, Max: limit.Max}); err != nil {
				t.Fatal(err)
			}
			_, _, err = newRank(1, dir, c.feeds, c.stdout, noOptions)
			if restored := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); restored != nil {
				t.Fatal(restored)
			}
			if !errors.Is(err, unix.EMFILE) {
				t.Fatalf("with %d descriptors left, %s: got %v, want that they are too few", free, c.name, err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("with %d descriptors left, %s: %d were open before, %d are after", free, c.name, before, after)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
				t.Errorf("with %d descriptors left, %s: left behind are %v, %v", free, c.name, entries, err)
			}
		}
	}
}

// noOptions returns the options of streams that Pump does not read.
func noOptions() output.Options { return output.Options{} }
