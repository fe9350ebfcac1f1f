package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/testexec"
)

// TestMain runs the tests. If GANGRUN_TEST_CHILD is set, it instead writes to the path in its argument, as another
// user or under limits that make the write fail.
func TestMain(m *testing.M) {
	path := os.Getenv("GANGRUN_TEST_PATH")
	var err error
	switch os.Getenv(testexec.ChildEnv) {
	case "":
		os.Exit(m.Run())
	case "full":
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 4096, Max: 4096}
		if err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err == nil {
			err = atomicfile.WriteFile(path, make([]byte, 10000), 0o600)
		}
	case "nobody":
		if err = syscall.Setuid(65534); err == nil || os.Getuid() != 0 {
			err = atomicfile.WriteFile(path, []byte("new"), 0o600)
		}
	case "forever":
		for i := 0; ; i++ {
			content := strings.Repeat(fmt.Sprintf("%08d\n", i), 1000)
			if err = atomicfile.WriteFile(path, []byte(content), 0o600); err != nil {
				break
			}
			if i == 0 {
				fmt.Println("ready")
			}
		}
	}
	fmt.Println(err)
	os.Exit(0)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// unchanged checks that path has this content, and that its directory has no other file.
func unchanged(t *testing.T, path, content string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("content is %q (%v), want %q", got, err, content)
	}
	if all := names(t, filepath.Dir(path)); len(all) != 1 {
		t.Errorf("the directory holds %q, want the file alone", all)
	}
}

func TestWriteFile(t *testing.T) {
	for _, perm := range []fs.FileMode{0o600, 0o644, 0o666} {
		path := filepath.Join(t.TempDir(), "file")
		for _, content := range []string{"one", "", strings.Repeat("three", 100000)} {
			if err := atomicfile.WriteFile(path, []byte(content), perm); err != nil {
				t.Fatal(err)
			}
			unchanged(t, path, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != perm {
			t.Errorf("mode is %v (%v), want %v", info.Mode(), err, perm)
		}
	}
}

func TestRelativePathAndLongName(t *testing.T) {
	t.Chdir(t.TempDir())
	name := strings.Repeat("n", 255)
	if err := atomicfile.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	unchanged(t, name, "x")
}

func TestSymlinkIsReplaced(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(t.TempDir(), "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	unchanged(t, link, "new")
	unchanged(t, target, "old")
}

func TestFailureKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := atomicfile.Write(path, 0o600, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		return boom
	})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want one that wraps the writer's and names the path", err)
	}
	unchanged(t, path, "old")
}

func TestPanicInTheWriterKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		atomicfile.Write(path, 0o600, func(io.Writer) error { panic("boom") })
	}()
	unchanged(t, path, "old")
}

func TestFullDiskKeepsTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := testexec.Child(t, "full", "GANGRUN_TEST_PATH="+path).Output()
	if err != nil || !strings.Contains(string(out), "file too large") || !strings.Contains(string(out), path) {
		t.Errorf("the writer said %q (%v), want that the file is too large, and its path", out, err)
	}
	unchanged(t, path, "old")
}

func TestReadOnlyDirectory(t *testing.T) {
	// Another user could not enter the directory of t.TempDir.
	dir, err := os.MkdirTemp("", "atomicfile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700); os.RemoveAll(dir) })
	path := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o666), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	out, err := testexec.Child(t, "nobody", "GANGRUN_TEST_PATH="+path).Output()
	if err != nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("the writer said %q (%v), want that it has no permission", out, err)
	}
	unchanged(t, path, "old")
}

func TestRenameFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(path, []byte("new"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if all := names(t, filepath.Dir(path)); len(all) != 1 {
		t.Errorf("the directory holds %q, want the old name alone", all)
	}
}

func TestMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "file")
	if err := atomicfile.WriteFile(path, nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want one that wraps fs.ErrNotExist", err)
	}
}

// whole checks that content consists of 1000 equal lines, as a single write leaves it.
func whole(content []byte) bool {
	lines := strings.SplitAfter(string(content), "\n")
	return len(lines) == 1001 && strings.Count(string(content), lines[0]) == 1000
}

func TestReadersSeeWholeFilesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(i int) {
		content := strings.Repeat(fmt.Sprintf("%08d\n", i), 1000)
		if err := atomicfile.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(0)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := range 20 {
				write(w*100 + i)
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for {
		if content, err := os.ReadFile(path); err != nil || !whole(content) {
			t.Fatalf("read %d bytes (%v) that no writer wrote", len(content), err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestKilledWriterLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for range 5 {
		cmd := testexec.Child(t, "forever", "GANGRUN_TEST_PATH="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Error(err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if content, err := os.ReadFile(path); err != nil || !whole(content) {
			t.Errorf("read %d bytes (%v) that no writer wrote", len(content), err)
		}
	}
}
