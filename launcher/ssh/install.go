package ssh

import (
	"bufio"
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

	packed *packings // nil: each host's is made anew
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

// runLine is the line that runs an installed program with arguments.
func runLine(path string, args ...string) string {
	var b strings.Builder
	b.WriteString("exec " + quote(path))
	for _, a := range args {
		b.WriteString(" " + quote(a))
	}
	return b.String()
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

// installProgram puts p on the host of c where it is missing, and says where it is, as
// installAndRun does.
func installProgram(ctx context.Context, c *Client, p Program) (path, note string, err error) {
	s, path, note, err := installAndRun(ctx, c, p)
	if err != nil {
		return "", "", err
	}
	s.Close()
	return path, note, nil
}

// installAndRun puts p on the host of c where it is missing, and runs it with arguments, if
// there are any, in the session that it returns.
// The program is $XDG_CACHE_HOME/gangrun/HASH/gangrun, or below ~/.cache; where that
// cannot hold a program that runs, below $XDG_RUNTIME_DIR, /tmp/gangrun-UID or
// /dev/shm/gangrun-UID, and note says why. What arrives gets its name only when
// its hash was checked on the host and it has run there, so that several may
// install it at once. Programs that nobody started for 30 days are removed. An end of
// ctx before the program is there ends the connection.
func installAndRun(ctx context.Context, c *Client, p Program, args ...string) (s *talk, path, note string, err error) {
	if err := p.check(); err != nil {
		return nil, "", "", err
	}
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	i := &installing{client: c, program: p}
	for from := 0; ; {
		words := append([]string{p.Hash, p.name(), strconv.FormatInt(p.Size, 10), hex.EncodeToString(nonce), strconv.Itoa(from), oneLine(takeScript)}, args...)
		s, r, err := i.run(ctx, script(installScript, words...))
		if err != nil {
			return nil, "", "", err
		}
		switch r.verdict {
		case "there":
			return s, r.path, i.note(r.path), nil
		case "none":
			return nil, "", "", i.failed("no directory takes it", "make one of these writable and able to run programs, or free space in it: ~/.cache, /tmp, /dev/shm", nil)
		case "no":
			from = r.place + 1
		case "bad":
			i.tries = nil
			return nil, "", "", i.failed(fmt.Sprintf("what arrived in %s is not what was sent (%s)", r.path, r.words), "try again; if it stays so, look at the host's disk and memory", nil)
		case "dead":
			i.tries = nil
			return nil, "", "", i.failed(fmt.Sprintf("it does not run from %s: %s", r.path, r.words), "gangrun is built for one kind of machine: build it for this host's (make build there), and see its security settings", nil)
		}
	}
}

// A talk is a session of which a part has been read.
type talk struct {
	*Session
	out *bufio.Reader
}

func newTalk(s *Session) *talk { return &talk{s, bufio.NewReaderSize(s.Stdout, maxGreeting)} }

// An installing is one installAndRun.
type installing struct {
	client  *Client
	program Program
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
	verdict string // there, can (take it), no, damaged (before), bad (another hash), dead (does not run), none (no place is left)
	path    string // of can: the form in which it is asked for
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

// maxReport bounds what is read of a script's output, in bytes.
const maxReport = 64 << 10

// run runs installScript and returns what it found last; places that were passed over go
// to i.tries. The session goes on where the program is there.
func (i *installing) run(ctx context.Context, command string) (t *talk, last report, err error) {
	s, err := i.client.Exec(ctx, command)
	if err != nil {
		return nil, report{}, i.ended(ctx, err)
	}
	// A session's end could not be told while what was sent before has no room.
	stop := context.AfterFunc(ctx, func() { i.client.Close() })
	defer stop()
	t = newTalk(s)
	said, reports, err := i.follow(ctx, t)
	if err == nil {
		last = i.count(reports)
	}
	if err == nil {
		err = ctx.Err() // by which the connection has ended
	}
	if err == nil && last.verdict == "there" {
		return t, last, nil
	}
	s.Close()
	code, _ := s.Wait() // it has ended, or does not count
	switch {
	case err != nil && len(reports) == 0 && brief(said) != "" && ctx.Err() == nil:
		return nil, report{}, fmt.Errorf("starting gangrun there, which printed %q: %w", brief(said), err)
	case err != nil:
		return nil, report{}, i.ended(ctx, err)
	case len(reports) == 0 && len(said) >= maxReport:
		return nil, report{}, &noisy{i.client.peer, said}
	case len(reports) == 0:
		return nil, report{}, &noAnswer{i.client.peer, code, said, s.Stderr()}
	case last.verdict == "" || last.verdict == "can":
		said = strings.TrimSpace(said + "\n" + s.Stderr())
		return nil, report{}, i.failed(fmt.Sprintf("its shell does not do as told; it said %q", said), "see what the user's login shell prints and does: "+i.client.peer.command()+" /bin/sh -c id", nil)
	}
	return t, last, nil
}

// ended is the error of a session, or that ctx has ended, whatever that made of the
// connection.
func (i *installing) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: putting gangrun there: %w", i.client.peer, context.Cause(ctx))
	}
	return err
}

// follow reads what the script prints, up to its end or to where the program is there, and
// sends the program when it is asked for.
func (i *installing) follow(ctx context.Context, t *talk) (said string, reports []report, err error) {
	sent, took := make(chan error, 1), make(chan struct{}, 1)
	sending := false
	var text []byte
	for len(text) < maxReport && err == nil {
		var line []byte
		line, err = t.out.ReadSlice('\n')
		if sending && string(line) == tookPiece {
			select {
			case took <- struct{}{}:
			default: // it has taken more than it was sent, as it says
			}
			continue
		}
		text = append(text, line...)
		if !strings.Contains(string(line), reportMark) {
			continue
		}
		reports = parseReports(string(text))
		last := len(reports) - 1
		if last >= 0 && reports[last].verdict == "there" {
			break
		}
		if last >= 0 && reports[last].verdict == "can" && !sending {
			sending = i.client.spawn(func() {
				err := i.send(t.Stdin, form(reports[last].path), took)
				if err != nil {
					t.Stdin.Close() // the script waits for more
				}
				sent <- err
			})
		}
	}
	close(took)
	switch {
	case errors.Is(err, io.EOF): // what is on its way to it goes nowhere
		ended, cancel := context.WithTimeout(ctx, byeLimit)
		stop := context.AfterFunc(ended, func() { _ = t.Close() })
		_, err = t.Wait()
		stop()
		cancel()
	case err != nil || len(text) >= maxReport:
		t.Close()
	}
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return string(text), nil, err
	}
	if sending {
		var local *localError
		if err := <-sent; errors.As(err, &local) {
			return "", nil, i.failed("the program cannot be read here: "+local.err.Error(), "make the gangrun that you run readable", local.err)
		}
	}
	return string(text), parseReports(string(text)), nil
}

// count notes what is reported of places that were passed over, and returns the last
// report.
func (i *installing) count(reports []report) (last report) {
	for _, r := range reports {
		switch r.verdict {
		case "no":
			i.tries = append(i.tries, r.path+" ("+r.words+")")
		case "damaged":
			i.damaged = append(i.damaged, r.path)
			continue
		}
		last = r
	}
	return last
}

// A localError is one of reading the program on this side.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// pieceSize is how much of a program is sent before the host says that it has taken it.
// What a host's sshd has received and the script has not taken lies in a buffer of sshd's,
// which it moves with every write: at 2 MiB, which is all that SSH lets be on its way,
// that takes more processor time than everything else about the program.
const pieceSize = 512 << 10

// tookPiece is the line by which a host says that it has taken a piece.
const tookPiece = reportMark + "0 took\n"

// send writes the program, in a form, behind a line with its size; took tells of each
// piece that the host has taken, and is closed when it takes no more. That the host stops
// reading is not send's to tell: its script says why.
func (i *installing) send(to io.Writer, f form, took <-chan struct{}) error {
	from, size, err := i.program.open(f)
	if err != nil {
		return &localError{err}
	}
	defer from.Close()
	if _, err := fmt.Fprintf(to, "%d\n", size); err != nil {
		return err
	}
	buffer := make([]byte, pieceSize)
	for piece := 0; ; piece++ {
		n, err := io.ReadFull(from, buffer)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return &localError{err}
		}
		if piece > 0 && n > 0 {
			if _, more := <-took; !more {
				return nil
			}
		}
		if _, writeErr := to.Write(buffer[:n]); writeErr != nil || err != nil {
			return writeErr
		}
	}
}
