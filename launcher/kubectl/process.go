package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// drainLimit limits the wait for the end of standard error after kubectl has ended. A program that kubectl has started,
// for instance to get credentials, may still hold it open.
const drainLimit = time.Second

// Process is a command that runs in a pod, together with the kubectl that forwards its input and output.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader // ends with an error if kubectl fails

	pod    string
	output *os.File
	stderr tail
	close  func() error
	ended  chan struct{} // closed when code and err are set
	code   int
	err    error
}

// errClosed is the error if the exit code of a process is not known because Close has ended kubectl.
var errClosed = errors.New("kubectl was ended before the command")

// start starts a kubectl that runs command in the pod. kubectl gets a session of its own. So it receives no Ctrl-C from
// the terminal, and cannot ask there for a password.
func (p *Pod) start(command string) (*Process, error) {
	life, kill := context.WithCancel(context.Background())
	cmd := exec.CommandContext(life, p.pods.Program, append(p.Words()[1:], "sh", "-c", command)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the whole session
	cmd.WaitDelay = drainLimit
	s := &Process{pod: p.name, ended: make(chan struct{})}
	cmd.Stderr = &s.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, err
	}
	output, w, err := os.Pipe()
	if err != nil {
		kill()
		_ = stdin.Close()
		return nil, err
	}
	cmd.Stdout = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		kill()
		_ = output.Close()
		return nil, err
	}
	s.Stdin, s.Stdout, s.output = stdin, (*stdout)(s), output
	s.close = sync.OnceValue(func() error {
		kill()
		return s.output.Close()
	})
	go func() { // Close waits for this goroutine
		defer close(s.ended)
		_ = cmd.Wait()
		s.code, s.err = s.result(cmd.ProcessState, life.Err() != nil)
		kill()
	}()
	return s, nil
}

// result returns the exit code of the command that a kubectl has run.
func (s *Process) result(state *os.ProcessState, closed bool) (int, error) {
	code := state.ExitCode()
	switch {
	case code == 0:
		return 0, nil
	case closed:
		return -1, fmt.Errorf("pod %q: %w", s.pod, errClosed)
	case code < 0:
		return -1, fmt.Errorf("pod %q: kubectl has ended: %s", s.pod, state)
	}
	if err := errorOf(s.pod, s.stderr.String()); err != nil {
		return -1, err
	}
	return code, nil
}

// Wait waits until kubectl has ended, and returns the exit code of the command. It returns an error if the code
// is not known, because kubectl has failed or was killed.
func (s *Process) Wait() (code int, err error) {
	<-s.ended
	return s.code, s.err
}

// Stderr returns the last 16 KiB of what the command and kubectl have written to standard error.
func (s *Process) Stderr() string { return s.stderr.String() }

// Close kills kubectl. It does not kill the command in the pod. But the command finds that its input has ended,
// and can no longer write to its output.
func (s *Process) Close() error { return s.close() }

// stdout is the standard output of a Process.
type stdout Process

// Read reads the output of the command. At the end of the output, it returns the error of kubectl, or io.EOF if there
// is none.
func (s *stdout) Read(p []byte) (int, error) {
	n, err := s.output.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	<-s.ended // only kubectl holds the other end
	if s.err != nil {
		return 0, s.err
	}
	return 0, err
}

// stderrLimit is how many bytes of standard error are kept.
const stderrLimit = 16 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// Write adds p, and drops the oldest bytes if there are more than stderrLimit.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-stderrLimit):]
	return len(p), nil
}

// String returns the kept bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
