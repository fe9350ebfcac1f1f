// Package agenttest has what the tests of the agent's packages share.
package agenttest

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// aloneEnv is a variable that names the test which has a process for itself.
const aloneEnv = "GANGRUN_TEST_ALONE"

// aloneTimeout is the time limit of a test in its own process, which then shows its goroutines. If Go's runtime hangs,
// the process cannot notice that the time is over. It is killed at aloneLimit.
const aloneTimeout, aloneLimit = 10 * time.Minute, 11 * time.Minute

// Alone runs the calling test again in a new process. It returns true in the new process, and false in the
// calling one. Alone is for tests that change a property of their whole process, such as a resource limit, or whether
// the process reaps orphans.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), aloneLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout="+aloneTimeout.String())
	cmd.WaitDelay = time.Second // a process that the test has left may hold the output open
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return false
}

// WriteFile makes a file, and the directories above it. It returns the path of the file.
func WriteFile(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Connected returns both ends of a connection over the loopback interface.
func Connected(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err = l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// Compile runs a compiler in directory dir.
func Compile(t *testing.T, dir string, compiler string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), compiler, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", compiler, args, err, out)
	}
}
