package kubectl

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for anything. A test that waits longer fails.
const limit = time.Minute

// fake is a kubectl. It prints the file stderr and exits with the code in the file code, or runs the command. It
// writes its arguments to the file words.
const fake = `#!/bin/sh
cd "${0%/*}"
for w; do echo "$w"; done >words
while [ "$1" != -- ]; do shift; done
shift
if [ -e code ]; then cat stderr >&2; exit "$(cat code)"; fi
"$@"
code=$?
if [ $code != 0 ]; then echo "command terminated with exit code $code" >&2; fi
exit $code
`

// site is the directory of a fake kubectl.
type site string

func newSite(t *testing.T) site {
	t.Helper()
	s := site(t.TempDir())
	s.write(t, "kubectl", fake)
	return s
}

func (s site) path(name string) string { return filepath.Join(string(s), name) }

func (s site) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (s site) run(t *testing.T, container, command string) *Process {
	t.Helper()
	pod := Pods{s.path("kubectl"), container}.Pod("w-0")
	t.Cleanup(func() {
		if err := pod.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := pod.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRun checks that a command gets its input, that its output and exit code come back, and that kubectl gets the
// words of the command unchanged.
func TestRun(t *testing.T) {
	s := newSite(t)
	const command = `cat; echo "a  'b' $((1+1))"; echo oops >&2; exit 7`
	p := s.run(t, "main", command)
	if _, err := io.WriteString(p.Stdin, "in\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout)
	if string(out) != "in\na  'b' 2\n" || err != nil {
		t.Errorf("it printed %q, %v", out, err)
	}
	if code, err := p.Wait(); code != 7 || err != nil {
		t.Errorf("it ended with %d, %v", code, err)
	}
	if said := p.Stderr(); !strings.HasPrefix(said, "oops\n") {
		t.Errorf("on its standard error it printed %q", said)
	}
	words, _ := os.ReadFile(s.path("words"))
	want := []string{"exec", "-i", "w-0", "-c", "main", "--", "sh", "-c", command}
	if got := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("kubectl got %q, want %q", got, want)
	}
}

// TestErrors checks that each failure of kubectl has a text and a hint, and that the output does not seem to end
// normally. The messages are those of kubectl 1.32. The message of "no sh" is that of containerd.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		stderr, code string
		text, hint   string
		lasting      bool
	}{
		"no such pod": {"Error from server (NotFound): pods \"w-0\" not found\n", "1",
			`pod "w-0": kubectl exec: Error from server (NotFound): pods "w-0" not found`, "kubectl get pods", false},
		"container not running": {"Defaulted container \"c0\" out of: c0, c1\nError from server (NotFound): container not found (\"c0\")\n", "1",
			`pod "w-0": kubectl exec: Error from server (NotFound): container not found ("c0")`, "kubectl describe pod w-0", false},
		"container has ended": {"Error from server (InternalError): Internal error occurred: error executing command in container: container is not running\n", "1",
			"container is not running", "kubectl describe pod w-0", false},
		"pod has ended": {"error: cannot exec into a container in a completed pod; current phase is Succeeded\n", "1",
			"completed pod", "kubectl describe pod w-0", false},
		"pod waits for a node": {"Error from server (BadRequest): pod w-0 does not have a host assigned\n", "1",
			"does not have a host assigned", "kubectl describe pod w-0", false},
		"forbidden": {"Error from server (Forbidden): pods \"w-0\" is forbidden: User \"u\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"default\"\n", "1",
			`cannot create resource "pods/exec"`, "kubectl auth can-i create pods/w-0 --subresource=exec", true},
		"not logged in": {"error: You must be logged in to the server (Unauthorized)\n", "1", "must be logged in", "log kubectl in", true},
		"no sh": {"OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown\ncommand terminated with exit code 126\n", "126",
			"exec failed", "has sh", true},
		"no server": {"The connection to the server localhost:8080 was refused - did you specify the right host or port?\n", "1",
			"localhost:8080 was refused", "kubectl exec w-0 -- true", false},
		"silent":        {"", "1", "it says nothing", "kubectl exec w-0 -- true", false},
		"control codes": {"\x1b[31merror: x\x07\n", "1", "error: x\ufffd", "kubectl exec w-0 -- true", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write(t, "stderr", c.stderr)
			s.write(t, "code", c.code)
			p := s.run(t, "", "true")
			out, err := io.ReadAll(p.Stdout)
			var failed *Error
			if !errors.As(err, &failed) || len(out) > 0 {
				t.Fatalf("the output is %q and ends with %v", out, err)
			}
			if !strings.Contains(failed.Error(), c.text) || !strings.Contains(failed.Hint(), c.hint) || failed.Lasting() != c.lasting {
				t.Errorf("error %q, hint %q, lasting %t", failed, failed.Hint(), failed.Lasting())
			}
			if _, waited := p.Wait(); !errors.Is(waited, err) {
				t.Errorf("Wait returns %v", waited)
			}
		})
	}
}

// TestClose checks that Close ends kubectl and the processes that it has started, whatever they are doing.
func TestClose(t *testing.T) {
	s := newSite(t)
	pod := Pods{Program: s.path("kubectl")}.Pod("w-0")
	p, err := pod.Run(t.Context(), "echo $$; exec sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	if n, err := p.Stdout.Read(buffer); n == 0 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	closed := make(chan error, 1)
	go func() { closed <- pod.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		t.Fatalf("Close has not returned after %s", limit)
	}
	if _, err := p.Wait(); !errors.Is(err, errClosed) {
		t.Errorf("Wait returns %v", err)
	}
	if _, err := p.Stdout.Read(buffer); err == nil {
		t.Error("it prints on")
	}
	if _, err := pod.Run(t.Context(), "true"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a command after that: %v", err)
	}
}

// TestKilled checks that the output ends with an error if kubectl is killed.
func TestKilled(t *testing.T) {
	s := newSite(t)
	s.write(t, "kubectl", "#!/bin/sh\necho $$; exec sleep 1000\n")
	p := s.run(t, "", "true")
	var pid int
	buffer := make([]byte, 100)
	n, err := p.Stdout.Read(buffer)
	for _, c := range strings.TrimSpace(string(buffer[:n])) {
		pid = 10*pid + int(c-'0')
	}
	if err != nil || pid < 2 {
		t.Fatal(n, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(p.Stdout); err == nil || !strings.Contains(err.Error(), `pod "w-0": kubectl has ended: signal: killed`) {
		t.Errorf("its output ends with %v", err)
	}
}

// TestRunTooLate checks that nothing is started if ctx has ended.
func TestRunTooLate(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Pods{Program: s.path("kubectl")}).Pod("w-0").Run(ctx, "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(s.path("words")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kubectl was started: %v", err)
	}
}

// TestFind checks that kubectl is found in PATH, and that the container is that of the operator's script.
func TestFind(t *testing.T) {
	s := newSite(t)
	script := func(text string, err error) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			if path != Agent {
				t.Errorf("it reads %q", path)
			}
			return []byte(text), err
		}
	}
	t.Setenv("PATH", string(s))
	const start = "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME}"
	for container, read := range map[string]func(string) ([]byte, error){
		"":     script(start+` -- /bin/sh -c "$*"`, nil),
		"main": script(start+` --container main -- /bin/sh -c "$*"`, nil),
	} {
		if pods, err := Find(read); err != nil || pods != (Pods{s.path("kubectl"), container}) {
			t.Errorf("%q: found %+v, %v", container, pods, err)
		}
	}
	if pods, err := Find(script("", fs.ErrNotExist)); err != nil || pods.Container != "" {
		t.Errorf("without the operator: found %+v, %v", pods, err)
	}
	if _, err := Find(script("", fs.ErrPermission)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a script that cannot be read: %v", err)
	}
	if _, err := os.Stat(operatorProgram); err == nil {
		return // this machine has a kubectl even without PATH
	}
	t.Setenv("PATH", t.TempDir())
	var hinted interface{ Hint() string }
	if _, err := Find(script("", fs.ErrNotExist)); !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "install kubectl") {
		t.Errorf("without kubectl: %v", err)
	}
}
