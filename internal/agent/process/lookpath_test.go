package process

import (
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
)

func TestLookProgram(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/bin/tool", "x", 0o755)
	agenttest.WriteFile(t, dir+"/bin/plain", "x", 0o644)
	agenttest.WriteFile(t, dir+"/other/plain", "x", 0o755)
	agenttest.WriteFile(t, dir+"/other/onlyplain", "x", 0o644)
	agenttest.WriteFile(t, dir+"/here", "x", 0o755)
	agenttest.WriteFile(t, dir+"/bin/sub/file", "x", 0o755)
	agenttest.WriteFile(t, dir+"/other/sub", "x", 0o755)
	if err := unix.Mkfifo(dir+"/fifo", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, program, path, want string
		err                       error
	}{
		{"in PATH", "tool", dir + "/bin", dir + "/bin/tool", nil},
		{"not executable in the first", "plain", dir + "/bin:" + dir + "/other", dir + "/other/plain", nil},
		{"a directory in the first", "sub", dir + "/bin:" + dir + "/other", dir + "/other/sub", nil},
		{"not executable anywhere", "onlyplain", dir + "/bin:" + dir + "/other", dir + "/other/onlyplain", fs.ErrPermission},
		{"behind a directory that is none", "tool", dir + "/here:" + dir + "/none:" + dir + "/bin", dir + "/bin/tool", nil},
		{"relative directory", "tool", "bin", dir + "/bin/tool", nil},
		{"empty element", "here", dir + "/bin::/nowhere", dir + "/here", nil},
		{"nowhere", "absent", dir + "/bin:" + dir + "/other", "", fs.ErrNotExist},
		{"no PATH", "tool", "", "", fs.ErrNotExist},
		{"relative path", "./bin/tool", "", dir + "/bin/tool", nil},
		{"relative path without a dot", "bin/tool", "", dir + "/bin/tool", nil},
		{"absolute path", dir + "/bin/tool", "", dir + "/bin/tool", nil},
		{"missing path", "./absent", "", dir + "/absent", fs.ErrNotExist},
		{"path below a file", "./here/tool", "", dir + "/here/tool", unix.ENOTDIR},
		{"path that is not executable", "bin/plain", dir + "/other", dir + "/bin/plain", fs.ErrPermission},
		{"directory", "./bin", "", dir + "/bin", unix.EISDIR},
		{"FIFO", "./fifo", "", dir + "/fifo", fs.ErrPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := LookPath(c.program, dir, []string{"PATH=/wrong", "PATH=" + c.path})
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}
