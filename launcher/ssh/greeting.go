package ssh

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// process is a process with a buffered reader of its output.
type process struct {
	*Process
	out *bufio.Reader
}

func newProcess(p *Process) *process { return &process{p, bufio.NewReaderSize(p.Stdout, maxGreeting)} }

// bridgeProcess is a process that runs a bridge, with the connection to its host. A bridge passes on data between this
// process and an agent.
type bridgeProcess struct {
	*process
	conn *Conn
}

// Read reads what the agent has sent.
func (b *bridgeProcess) Read(p []byte) (int, error) { return b.out.Read(p) }

// Write sends data to the agent.
func (b *bridgeProcess) Write(p []byte) (int, error) { return b.Stdin.Write(p) }

// Close closes the connection to the host. Data that has not arrived yet may be lost.
func (b *bridgeProcess) Close() error { return b.conn.Close() }

// closedByHost reports whether the host closed the connection. Otherwise, the connection ended because the host was
// silent.
func (b *bridgeProcess) closedByHost() bool { return !isTimeout(b.conn.Err()) }

// isTimeout reports whether err is a timeout.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answer is the first line of a bridge.
type answer struct {
	state                     bridge.State
	boot, program, words, fix string
}

// noAnswerError is the error if a command that should run a bridge ended without the answer of a bridge.
type noAnswerError struct {
	host            Host
	code            int
	printed, stderr string // on standard output and on standard error
}

// Error says how the command ended and what it printed.
func (e *noAnswerError) Error() string {
	said := "printed nothing"
	switch out, errs := brief(e.printed), brief(e.stderr); {
	case out != "" && errs != "":
		said = fmt.Sprintf("printed %q, and %q on its standard error", out, errs)
	case out != "" || errs != "":
		said = fmt.Sprintf("printed %q", out+errs)
	}
	return fmt.Sprintf("%s: gangrun does not answer there: the shell ended with code %d and %s", e.host, e.code, said)
}

// Hint says what to do next.
func (e *noAnswerError) Hint() string {
	suspect := cmp.Or(e.host.Suspect, fmt.Sprintf("ForceCommand in the sshd_config of %s, and the user's login shell there and its start files (.bashrc and the like)", e.host.Name))
	return fmt.Sprintf("see %s; to test the connection: %s true", suspect, e.host.Login)
}

// noisyError is the error if a login shell prints more than maxGreeting before the answer of a bridge.
type noisyError struct {
	host    Host
	printed string // the beginning of the output
}

// Error says what the login shell printed.
func (e *noisyError) Error() string {
	return fmt.Sprintf("%s: gangrun cannot start there: the login shell printed more than %d KiB before it, beginning with %q", e.host, maxGreeting>>10, brief(e.printed))
}

// Hint says what to do next.
func (e *noisyError) Hint() string {
	return fmt.Sprintf("see what prints that: %s true; let the start files of the login shell there (.bashrc and the like) print nothing unless the shell is interactive: case $- in *i*) ;; *) return;; esac", e.host.Login)
}

// maxWords limits how many bytes an error quotes of a host's output.
const maxWords = 160

// brief returns the beginning of a host's output.
func brief(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > maxWords {
		return strings.ToValidUTF8(text[:maxWords], "") + "..."
	}
	return text
}

// maxGreeting limits how many bytes a login shell may print before the answer of a bridge.
const maxGreeting = 64 << 10

// runBridge runs a command that is a bridge, and reads the answer of the bridge.
func runBridge(ctx context.Context, c *Conn, command string) (*bridgeProcess, answer, error) {
	p, err := c.Run(ctx, command)
	if err != nil {
		return nil, answer{}, err
	}
	return readAnswer(ctx, c, newProcess(p))
}

// readAnswer reads the answer of a bridge that was started. If there is no answer, readAnswer ends the process. If ctx
// ends, readAnswer closes the whole connection, because ending only the process would need an answer of the host.
func readAnswer(ctx context.Context, c *Conn, p *process) (*bridgeProcess, answer, error) {
	b := &bridgeProcess{p, c}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	said, printed, err := b.greeting()
	if err == nil {
		return b, said, nil
	}
	if ctx.Err() != nil {
		return nil, answer{}, fmt.Errorf("%s: starting a bridge: %w", c.Host, context.Cause(ctx))
	}
	if errors.Is(err, errNoisy) {
		_ = p.Close()
		return nil, answer{}, &noisyError{c.Host, printed}
	}
	ended, cancel := context.WithTimeout(ctx, byeLimit)
	defer cancel()
	defer context.AfterFunc(ended, func() { _ = p.Close() })()
	code, err := p.Wait()
	_ = p.Close()
	mute := &noAnswerError{c.Host, code, printed, p.Stderr()}
	if err != nil {
		if words := brief(printed + mute.stderr); words != "" {
			return nil, answer{}, fmt.Errorf("starting a bridge, which printed %q: %w", words, err)
		}
		return nil, answer{}, fmt.Errorf("starting a bridge: %w", err)
	}
	return nil, answer{}, mute
}

// errNoisy means that a login shell prints more than maxGreeting.
var errNoisy = errors.New("the login shell prints too much")

// greeting reads the output up to the answer of a bridge. The text that a login shell prints before the answer may not
// end with a newline. If there is no answer, printed is the beginning of the output.
func (b *bridgeProcess) greeting() (said answer, printed string, err error) {
	var before []byte
	for len(before) <= maxGreeting {
		line, err := b.out.ReadSlice('\n')
		if _, rest, ok := strings.Cut(string(line), bridge.Greeting); ok && err == nil {
			if said, ok := parseAnswer(rest); ok {
				return said, "", nil
			}
		}
		before = append(before, line...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return answer{}, string(before), err
		}
	}
	return answer{}, string(before), errNoisy
}

// parseAnswer parses the text after bridge.Greeting in the answer of a bridge.
func parseAnswer(line string) (answer, bool) {
	words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	if len(words) < 3 {
		return answer{}, false
	}
	program, text, ok := strings.Cut(words[2], "\t")
	text, fix, _ := strings.Cut(text, "\t") // a bridge of an older gangrun has no fix
	return answer{bridge.State(words[0]), words[1], program, text, fix}, ok
}
