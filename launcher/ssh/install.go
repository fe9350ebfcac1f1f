package ssh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// A Program is a static binary to be brought to hosts. Each knows the command of
// package selfcheck, by which a host sees that it has arrived whole and runs there.
type Program struct {
	Hash string // SHA-256, 64 lower-case hexadecimal digits
	Name string // of the file on the host; "" for gangrun
	Size int64  // bytes
	Open func() (io.ReadCloser, error)
}

func (p Program) name() string {
	if p.Name == "" {
		return "gangrun"
	}
	return p.Name
}

// check refuses what must not become part of a command line.
func (p Program) check() error {
	if raw, err := hex.DecodeString(p.Hash); err != nil || len(raw) != 32 || p.Hash != strings.ToLower(p.Hash) {
		return fmt.Errorf("program hash %q is no SHA-256 in lower-case hexadecimal digits", p.Hash)
	}
	if p.Size <= 0 {
		return fmt.Errorf("program size %d is not above 0", p.Size)
	}
	if strings.Trim(p.name(), "abcdefghijklmnopqrstuvwxyz-") != "" || p.name()[0] == '-' {
		return fmt.Errorf("program name %q has something else than a to z and dashes in it", p.Name)
	}
	return nil
}

// exitNotInstalled is the exit code of a startLine whose program is not on the
// host.
const exitNotInstalled = 113

// runLine is the line that runs an installed program with arguments.
func runLine(path string, args ...string) string {
	var b strings.Builder
	b.WriteString("exec " + quote(path))
	for _, a := range args {
		b.WriteString(" " + quote(a))
	}
	return b.String()
}

// startLine is the line that runs p with arguments where it is installed, in
// one round trip, and marks it as used; where it is not, it ends with code
// exitNotInstalled and has read nothing of its input.
func startLine(p Program, args ...string) (string, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	return script(startScript, append([]string{p.Hash, p.name(), strconv.FormatInt(p.Size, 10)}, args...)...), nil
}

// InstallError is a host on which the program could not be put, or not run.
type InstallError struct {
	Peer
	Tries []string // "DIRECTORY: why not", in the order tried
	Text  string
	Fix   string
	Err   error
}

// Error says what was tried.
func (e *InstallError) Error() string {
	text := fmt.Sprintf("%s: gangrun cannot be put there: %s", e.Peer, e.Text)
	if len(e.Tries) > 0 {
		text += ": " + strings.Join(e.Tries, "; ")
	}
	return text
}

// Unwrap is what the connection or the local file said.
func (e *InstallError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *InstallError) Hint() string { return e.Fix }

// installProgram puts p on the host of c where it is missing, and says where it is.
// It is $XDG_CACHE_HOME/gangrun/HASH/gangrun, or below ~/.cache; where that
// cannot hold a program that runs, below $XDG_RUNTIME_DIR, /tmp/gangrun-UID or
// /dev/shm/gangrun-UID, and note says why. What arrives gets its name only when
// its hash was checked on the host and it has run there, so that several may
// install it at once. Programs that nobody started for 30 days are removed. An end of
// ctx ends the connection.
func installProgram(ctx context.Context, c *Client, p Program) (path, note string, err error) {
	if err := p.check(); err != nil {
		return "", "", err
	}
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	i := &installing{client: c, program: p, args: []string{p.Hash, p.name(), strconv.FormatInt(p.Size, 10), hex.EncodeToString(nonce)}}
	for from := 0; ; {
		r, err := i.step(ctx, probeScript, from, false)
		if err != nil {
			return "", "", err
		}
		if r.verdict == "can" {
			if r, err = i.step(ctx, putScript, r.place, true); err != nil {
				return "", "", err
			}
		}
		switch r.verdict {
		case "there":
			return r.path, i.note(r.path), nil
		case "none":
			return "", "", i.failed("no directory takes it", "make one of these writable and able to run programs, or free space in it: ~/.cache, /tmp, /dev/shm", nil)
		case "no":
			from = r.place + 1
		case "bad":
			i.tries = nil
			return "", "", i.failed(fmt.Sprintf("what arrived in %s is not what was sent (%s)", r.path, r.words), "try again; if it stays so, look at the host's disk and memory", nil)
		case "dead":
			i.tries = nil
			return "", "", i.failed(fmt.Sprintf("it does not run from %s: %s", r.path, r.words), "gangrun is built for one kind of machine: build it for this host's (make build there), and see its security settings", nil)
		}
	}
}

// An installing is one Install.
type installing struct {
	client  *Client
	program Program
	args    []string
	tries   []string
	damaged []string // programs that were there and not what they should be
}

func (i *installing) failed(text, fix string, err error) error {
	return &InstallError{Peer: i.client.peer, Tries: i.tries, Text: text, Fix: fix, Err: err}
}

// note says why the program was sent again, and why it is not where it should be.
func (i *installing) note(where string) string {
	var notes []string
	if len(i.damaged) > 0 {
		notes = append(notes, fmt.Sprintf("%s was damaged (it was not what had been put there) and was put there anew: see whether the host's disk is sound", strings.Join(i.damaged, ", ")))
	}
	if len(i.tries) > 0 {
		notes = append(notes, fmt.Sprintf("the program is in %s, because not in %s", path.Dir(path.Dir(where)), strings.Join(i.tries, "; ")))
	}
	return strings.Join(notes, "; ")
}

// A report is what a script says of one place.
type report struct {
	place   int
	verdict string // there, can, no, damaged (before), bad (another hash), dead (does not run), none (no place is left)
	path    string
	words   string // of the host's own tools
}

// reportMark begins a report; what a login shell prints before is passed over.
const reportMark = "@gangrun "

// parseReports reads what a script printed.
func parseReports(text string) []report {
	var reports []report
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		rest, ok := strings.CutPrefix(line, reportMark)
		if !ok && len(reports) == 0 { // what a login shell prints need not end its line
			_, rest, ok = strings.Cut(line, reportMark)
		}
		if !ok {
			if n := len(reports); n > 0 && line != "" {
				if w := &reports[n-1].words; *w == "" {
					*w = line
				} else {
					*w += ", " + line
				}
			}
			continue
		}
		place, rest, _ := strings.Cut(rest, " ")
		verdict, path, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(place)
		if err != nil || n < 0 || n > places {
			continue
		}
		reports = append(reports, report{place: n, verdict: verdict, path: path})
	}
	return reports
}

// step runs one script and returns what it found last; places that were passed
// over go to i.tries.
func (i *installing) step(ctx context.Context, text string, place int, send bool) (report, error) {
	out, stderr, err := i.run(ctx, script(text, append(i.args, strconv.Itoa(place))...), send)
	if err != nil {
		return report{}, err
	}
	reports := parseReports(out)
	for _, r := range reports {
		switch r.verdict {
		case "no":
			i.tries = append(i.tries, r.path+" ("+r.words+")")
		case "damaged":
			i.damaged = append(i.damaged, r.path)
		}
	}
	if len(reports) > 0 {
		switch last := reports[len(reports)-1]; last.verdict {
		case "there", "can", "no", "bad", "dead", "none":
			return last, nil
		}
	}
	said := strings.TrimSpace(out + "\n" + stderr)
	if said == "" {
		said = "nothing"
	}
	return report{}, i.failed(fmt.Sprintf("its shell does not do as told; it said %q", said), "see what the user's login shell prints and does: "+i.client.peer.command()+" /bin/sh -c id", nil)
}

// maxReport bounds what is read of a script's output, in bytes.
const maxReport = 64 << 10

func (i *installing) run(ctx context.Context, command string, send bool) (out, stderr string, err error) {
	defer func() {
		if ctx.Err() != nil { // whatever that made of the connection
			out, stderr, err = "", "", fmt.Errorf("%s: putting gangrun there: %w", i.client.peer, context.Cause(ctx))
		}
	}()
	s, err := i.client.Exec(ctx, command)
	if err != nil {
		return "", "", err
	}
	defer s.Close()
	// A session's end could not be told while what was sent before has no room.
	stop := context.AfterFunc(ctx, func() { i.client.Close() })
	defer stop()
	var sendErr error
	sent := make(chan struct{})
	if !i.client.spawn(func() {
		defer close(sent)
		defer s.Stdin.Close()
		if send {
			sendErr = i.send(s.Stdin)
		}
	}) {
		return "", "", i.client.broken(ctx, nil)
	}
	data, err := io.ReadAll(io.LimitReader(s.Stdout, maxReport))
	if err == nil {
		_, err = s.Wait()
	}
	if err != nil {
		return "", "", err
	}
	<-sent // the session has ended, and with it what is written to it
	var local *localError
	if errors.As(sendErr, &local) {
		return "", "", i.failed("the program cannot be read here: "+local.err.Error(), "make the gangrun that you run readable", local.err)
	}
	return string(data), s.Stderr(), nil
}

// A localError is one of reading the program on this side.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// send writes the program. That the host stops reading is not send's to tell:
// its script says why.
func (i *installing) send(to io.Writer) error {
	from, err := i.program.Open()
	if err != nil {
		return &localError{err}
	}
	defer from.Close()
	buffer := make([]byte, 256<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &localError{err}
		}
	}
}
