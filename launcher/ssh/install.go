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

// InstallError reports that gangrun could not install its program on a host, or that the program does not run
// there.
type InstallError struct {
	Host  Host
	Tries []string // directories that were tried, in order, as "DIRECTORY (why not)"
	Text  string
	Fix   string
	Err   error
}

// Error names the host, what is wrong there and the directories that were tried.
func (e *InstallError) Error() string {
	text := fmt.Sprintf("%s: gangrun cannot be installed: %s", e.Host, e.Text)
	if len(e.Tries) > 0 {
		text += ": " + strings.Join(e.Tries, "; ")
	}
	return text
}

// Unwrap returns the error of the connection or of the local file.
func (e *InstallError) Unwrap() error { return e.Err }

// Hint says what the user should do.
func (e *InstallError) Hint() string { return e.Fix }

// install installs p on the host of c if the host lacks it. It returns the path of p there, and a note as installAndRun
// does.
func install(ctx context.Context, c *Conn, p Program) (path, note string, err error) {
	s, path, note, err := installAndRun(ctx, c, p)
	if err != nil {
		return "", "", err
	}
	_ = s.Close()
	return path, note, nil
}

// installAndRun installs p on the host of c if the host lacks it. If there are arguments, it then runs p with them.
//
// The program is $XDG_CACHE_HOME/gangrun/HASH/gangrun, or ~/.cache/gangrun/HASH/gangrun. If no program can be installed
// or run there, it is below $XDG_RUNTIME_DIR, /tmp/gangrun-UID or /dev/shm/gangrun-UID, and note says why. The file
// gets its name only after the host has checked its hash and run it. So several controllers may install it at the same
// time. If ctx ends before the program is installed, installAndRun closes the connection.
func installAndRun(ctx context.Context, c *Conn, p Program, args ...string) (s *process, path, note string, err error) {
	if err := p.check(); err != nil {
		return nil, "", "", err
	}
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	i := &installation{conn: c, program: p}
	for from := 0; ; {
		words := append([]string{p.Hash, p.fileName(), strconv.FormatInt(p.Size, 10), hex.EncodeToString(nonce), strconv.Itoa(from), oneLine(takeScript)}, args...)
		s, r, err := i.run(ctx, script(installScript, words...))
		if err != nil {
			return nil, "", "", err
		}
		switch r.verdict {
		case "there":
			return s, r.path, i.note(r.path), nil
		case "none":
			return nil, "", "", i.failed("no directory is usable", "make one of these writable and able to run programs, or free space in it: ~/.cache, /tmp, /dev/shm", nil)
		case "no":
			from = r.place + 1
		case "bad":
			i.tries = nil
			return nil, "", "", i.failed(fmt.Sprintf("what the host received in %s is not what was sent (%s)", r.path, r.words), "try again; if it happens again, check the disk and the memory of the host", nil)
		case "dead":
			i.tries = nil
			return nil, "", "", i.failed(fmt.Sprintf("it does not run from %s: %s", r.path, r.words), "gangrun runs only on the kind of machine that it was built for: build it there (make build), and check the security settings of the host", nil)
		}
	}
}

// installation is one call of installAndRun.
type installation struct {
	conn    *Conn
	program Program
	tries   []string
	damaged []string // the paths of damaged programs
}

func (i *installation) failed(text, fix string, err error) error {
	return &InstallError{Host: i.conn.Host, Tries: i.tries, Text: text, Fix: fix, Err: err}
}

// note returns a text that says why the program was sent again, and why it is not in the first directory.
func (i *installation) note(where string) string {
	var notes []string
	if len(i.damaged) > 0 {
		notes = append(notes, fmt.Sprintf("%s was damaged and was installed again: check the disk of the host", strings.Join(i.damaged, ", ")))
	}
	if len(i.tries) > 0 {
		notes = append(notes, fmt.Sprintf("the program is in %s, because not in %s", path.Dir(path.Dir(where)), strings.Join(i.tries, "; ")))
	}
	return strings.Join(notes, "; ")
}

// maxReport limits how many bytes of the output of the script are read.
const maxReport = 64 << 10

// run runs installScript and returns its last report. It adds the directories that are not usable to i.tries. If the
// program is there and has arguments, the process p that runs the script continues as the program.
func (i *installation) run(ctx context.Context, command string) (p *process, last report, err error) {
	started, err := i.conn.Run(ctx, command)
	if err != nil {
		return nil, report{}, i.ended(ctx, err)
	}
	// It is not enough to end only the process. If data that was sent before fills the connection, the host does not
	// receive the order to end the process.
	stop := context.AfterFunc(ctx, func() { _ = i.conn.Close() })
	defer stop()
	p = newProcess(started)
	said, reports, err := i.follow(ctx, p)
	if err == nil {
		last = i.count(reports)
	}
	if err == nil {
		err = ctx.Err() // ctx has ended, and so the connection was closed
	}
	if err == nil && last.verdict == "there" {
		return p, last, nil
	}
	_ = p.Close()
	code, _ := p.Wait() // the process has ended, or its code does not matter
	switch {
	case err != nil && len(reports) == 0 && brief(said) != "" && ctx.Err() == nil:
		return nil, report{}, fmt.Errorf("starting gangrun on the host, which printed %q: %w", brief(said), err)
	case err != nil:
		return nil, report{}, i.ended(ctx, err)
	case len(reports) == 0 && len(said) >= maxReport:
		return nil, report{}, &noisyError{i.conn.Host, said}
	case len(reports) == 0:
		return nil, report{}, &noAnswerError{i.conn.Host, code, said, p.Stderr()}
	case last.verdict == "" || last.verdict == "can":
		said = strings.TrimSpace(said + "\n" + p.Stderr())
		return nil, report{}, i.failed(fmt.Sprintf("the login shell does not run the command; it printed %q", said), "see what the login shell of the user prints and does: "+i.conn.Host.Login+" /bin/sh -c id", nil)
	}
	return p, last, nil
}

// ended returns the error for the end of the process. If ctx has ended, it is the cause of ctx. Otherwise it is err.
func (i *installation) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: installing gangrun: %w", i.conn.Host, context.Cause(ctx))
	}
	return err
}

// follow reads the output of the script until the script ends or reports that the program is there. If the script asks
// for the program, follow sends it.
func (i *installation) follow(ctx context.Context, p *process) (said string, reports []report, err error) {
	sent, took := make(chan error, 1), make(chan struct{}, 1)
	sending := false
	var text []byte
	for len(text) < maxReport && err == nil {
		var line []byte
		line, err = p.out.ReadSlice('\n')
		if sending && string(line) == tookPiece {
			select {
			case took <- struct{}{}:
			default: // the script confirms more pieces than were sent
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
			sending = true
			go func() {
				err := i.send(p.Stdin, form(reports[last].path), took)
				if err != nil {
					_ = p.Stdin.Close() // otherwise the script would wait for more
				}
				sent <- err
			}()
		}
	}
	close(took)
	switch {
	case errors.Is(err, io.EOF):
		ended, cancel := context.WithTimeout(ctx, byeLimit)
		stop := context.AfterFunc(ended, func() { _ = p.Close() })
		_, err = p.Wait()
		stop()
		cancel()
	case err != nil || len(text) >= maxReport:
		_ = p.Close()
	}
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		if sending {
			_ = i.conn.Close() // otherwise a write may block as long as the connection exists
			<-sent
		}
		return string(text), nil, err
	}
	if sending {
		var local *localError
		if err := <-sent; errors.As(err, &local) {
			return "", nil, i.failed("the program cannot be read on this machine: "+local.err.Error(), "make the gangrun that you run readable", local.err)
		}
	}
	return string(text), parseReports(string(text)), nil
}

// count records the directories that are not usable and the damaged programs, and returns the
// last report.
func (i *installation) count(reports []report) (last report) {
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
