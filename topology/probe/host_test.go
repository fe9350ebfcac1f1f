package probe

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// host is a directory of programs: scripts by name.
func host(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	// A program cannot be run while a child that is being forked holds it open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for name, script := range scripts {
		script = "#!/bin/sh\nD=" + data + "\ncd " + dir + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// smi is a script that answers by its arguments, and fails for others.
func smi(cases string) string {
	return "case \"$*\" in\n" + cases + "\n*) echo \"nvidia-smi was called with $*\" >&2; exit 2;;\nesac"
}

const (
	topoOf3 = "printf '\\tGPU0\\tGPU1\\tGPU2\\tmlx5_0\\tCPU Affinity\\tNUMA Affinity\\nGPU0\\t X \\tNV18\\tNV18\\tPIX\\t0-3\\t0\\nGPU1\\tNV18\\t X \\tNV18\\tSYS\\t4-7\\t1\\nGPU2\\tNV18\\tNV18\\t X \\tSYS\\t4-7\\t1\\n'"
	h100    = "-q\\ -x) cat $D/query-550-h100.xml;;\n"
)

// waitFile waits for a child to make a file, which is then whole.
func waitFile(t *testing.T, path string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Errorf("the child has not made it after a minute: %v", err)
			return
		}
	}
}

// compare holds findings against "severity: text | hint", in any order.
func compare(t *testing.T, findings []job.Finding, want []string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Errorf("%d findings, want %d: %+v", len(findings), len(want), findings)
	}
	for _, w := range want {
		severity, rest, _ := strings.Cut(w, ": ")
		text, hint, _ := strings.Cut(rest, "|")
		found := false
		for _, f := range findings {
			found = found || string(f.Severity) == severity && f.Check == Check && f.Hint != "" &&
				strings.Contains(f.Text, strings.TrimSpace(text)) && strings.Contains(f.Hint, strings.TrimSpace(hint))
		}
		if !found {
			t.Errorf("no finding is %q: %+v", w, findings)
		}
	}
}
