package pathfact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/job"
)

func TestTryDirectory(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		got := TryDirectory(dir)
		if got.Path != dir || !got.Dir || !got.Created || got.Step != "" || got.Kind != job.ErrorNone || got.Largest != 0 || got.Free <= 0 {
			t.Errorf("got %+v", got)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("it holds %v, %v; want nothing", entries, err)
		}
		if again := TryDirectory(dir); again.Created || again.Step != "" {
			t.Errorf("once more: got %+v", again)
		}
	})
	t.Run("in use", func(t *testing.T) {
		dir := t.TempDir()
		agenttest.WriteFile(t, dir+"/small.pt", strings.Repeat("x", 10), 0o644)
		agenttest.WriteFile(t, dir+"/step-20/a.pt", strings.Repeat("x", 3000), 0o644)
		agenttest.WriteFile(t, dir+"/step-20/deep/b.pt", strings.Repeat("x", 4000), 0o644)
		agenttest.WriteFile(t, dir+"/middle.pt", strings.Repeat("x", 5000), 0o644)
		if err := os.Symlink("/dev/zero", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		got := TryDirectory(dir)
		if got.Created || got.Step != "" || got.Largest != 7000 {
			t.Errorf("got %+v, want a largest entry of 7000 bytes", got)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 4 {
			t.Errorf("it holds %v, %v; want the 4 entries that were there", entries, err)
		}
		if data, err := os.ReadFile(dir + "/small.pt"); err != nil || string(data) != "xxxxxxxxxx" {
			t.Errorf("a checkpoint has changed to %q, %v", data, err)
		}
	})
	t.Run("a file in the way", func(t *testing.T) {
		file := agenttest.WriteFile(t, filepath.Join(t.TempDir(), "file"), "mine", 0o644)
		if got := TryDirectory(file); got.Step != "create" || got.Kind != job.ErrorKindOf || got.Dir || got.Created {
			t.Errorf("got %+v", got)
		}
		if got := TryDirectory(file + "/ckpt"); got.Step != "create" || got.Kind != job.ErrorMissing || got.Error != "not a directory" || got.Created {
			t.Errorf("below a file: got %+v", got)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
			t.Errorf("the file has changed to %q, %v", data, err)
		}
	})
	t.Run("where nothing can be written", func(t *testing.T) {
		got := TryDirectory("/proc/self")
		if got.Step != "write" || got.Kind == job.ErrorNone || got.Error == "" || !got.Dir || got.Created {
			t.Errorf("got %+v", got)
		}
		got = TryDirectory("/proc/self/ckpt")
		if got.Step != "create" || got.Kind == job.ErrorNone || got.Error == "" || got.Dir || got.Created {
			t.Errorf("below it: got %+v", got)
		}
	})
}
