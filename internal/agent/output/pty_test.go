package output

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/notify"
)

// awkward returns text with every byte, and with lines in all forms that a terminal could change. A log must have it
// unchanged.
func awkward() []byte {
	var text []byte
	for b := range 256 {
		text = append(text, byte(b))
	}
	text = append(text, "\n\r\n\n\r\t\x04\x03\x1a\x1c\x11\x13\x7f\x00\xff\xff\x00one\ttab\ntwo\r\n"...)
	text = append(text, bytes.Repeat([]byte("x"), 1<<20)...) // longer than any line buffer
	return append(text, "\r\nno end"...)
}

// TestPumpOfPTY checks that a terminal passes on every byte unchanged, however much is written at once.
func TestPumpOfPTY(t *testing.T) {
	for name, text := range map[string][]byte{"awkward": awkward(), "lines": bytesOf(3 << 20), "nothing": nil, "one": {4}} {
		for _, size := range []int{1, 777, 1 << 20} {
			if size == 1 && len(text) > 4<<10 {
				continue
			}
			t.Run(name+" "+strconv.Itoa(size), func(t *testing.T) {
				p := newPumpedFrom(t, OpenPTY)
				p.start()
				for rest := text; len(rest) > 0; {
					n, err := p.to.Write(rest[:min(size, len(rest))])
					if err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := p.to.Close(); err != nil {
					t.Fatal(err)
				}
				<-p.done
				p.whole(t, text)
				if p.truncated {
					t.Error("the stream counts as truncated, though its end was seen")
				}
			})
		}
	}
}

// TestPTYLosesNothing checks that the log has everything that a process has written before it is killed, even if that
// is more than a terminal can hold.
func TestPTYLosesNothing(t *testing.T) {
	const rounds, ranks = 12, 16
	dir := t.TempDir()
	for round := range rounds {
		text := bytesOf(1 + round*round*997)
		file := agenttest.WriteFile(t, dir+"/text"+strconv.Itoa(round), string(text), 0o644)
		var all []*pumped
		var commands []*exec.Cmd
		for range ranks {
			p := newPumpedFrom(t, OpenPTY)
			cmd := exec.Command("sh", "-c", `cat "$0"; kill -9 $$`, file)
			cmd.Stdout = p.to
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = p.to.Close()
			p.start()
			all, commands = append(all, p), append(commands, cmd)
		}
		for i, p := range all {
			<-p.done
			p.whole(t, text)
			if err := commands[i].Wait(); commands[i].ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Errorf("the writer ended otherwise than by SIGKILL: %v", err)
			}
		}
	}
}

// TestPTYEndsAfterItsLastByte checks that the end of a terminal comes after its last byte, even if both come at almost
// the same time.
func TestPTYEndsAfterItsLastByte(t *testing.T) {
	for round := range 500 {
		text := bytesOf(1 + round*7%5000)
		ours, theirs, err := OpenPTY()
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := theirs.Write(text)
			wrote <- errors.Join(err, theirs.Close())
		}()
		conn, err := ours.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(&readEnd{from: ours, conn: conn, busy: new(atomic.Bool)})
		if !errors.Is(err, unix.EIO) || !bytes.Equal(got, text) {
			t.Fatalf("round %d: read %d bytes of %d, then %v; want all, then EIO", round, len(got), len(text), err)
		}
		if err := errors.Join(<-wrote, ours.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPTYSettings checks that a terminal has a size, is no process's controlling terminal, and does not echo what is
// written.
func TestPTYSettings(t *testing.T) {
	ours, theirs, err := OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	// A session leader without a terminal would get a controlling terminal if it opened one without O_NOCTTY. The
	// seventh field of /proc/PID/stat is 0 as long as it has none.
	cmd := exec.Command("sh", "-c", `exec 3<&1; cut -d' ' -f7 /proc/$$/stat; stty size <&3; stty -a <&3 | tr ' ;' '\n\n' | grep -x -e -opost -e -echo -e -isig -e -icanon -e -ixon | sort`)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = theirs, os.Stderr, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	got, err := io.ReadAll(ours)
	if !errors.Is(err, unix.EIO) {
		t.Errorf("its end: %v, want EIO", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if want := "0\n24 80\n-echo\n-icanon\n-isig\n-ixon\n-opost\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnread checks that unread data is noticed. The end of a stream does not count as unread data.
func TestUnread(t *testing.T) {
	for name, open := range map[string]Opener{"pipe": OpenPipe, "terminal": OpenPTY} {
		t.Run(name, func(t *testing.T) {
			p := newPumpedFrom(t, open)
			if p.unread() {
				t.Error("of nothing written, something is unread")
			}
			if _, err := p.to.WriteString("\x04"); err != nil {
				t.Fatal(err)
			}
			if !p.unread() {
				t.Error("what was written is not unread")
			}
			if _, err := p.from.Read(make([]byte, 10)); err != nil || p.unread() {
				t.Errorf("unread is %t, %v, when all is read", p.unread(), err)
			}
			if err := p.to.Close(); err != nil || p.unread() {
				t.Errorf("unread is %t, %v, at the end", p.unread(), err)
			}
			p.start()
			<-p.done
			if p.unread() {
				t.Error("something is unread of a stream that is closed")
			}
		})
	}
}

// TestPTYClosedByForce checks that writers to a terminal get an error after Pump was ended by force.
func TestPTYClosedByForce(t *testing.T) {
	p := newPumpedFrom(t, OpenPTY)
	p.start()
	if err := p.from.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if !p.truncated {
		t.Error("the stream does not count as truncated")
	}
	if _, err := p.to.WriteString("x"); !errors.Is(err, unix.EIO) {
		t.Errorf("writing: got %v, want EIO", err)
	}
}

// TestNoPTY checks that the error says what the host lacks, and the hint what to do.
func TestNoPTY(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&os.PathError{Op: "open", Path: "/dev/ptmx", Err: unix.ENOENT}, "there is no /dev/ptmx: mount devpts on /dev/pts"},
		{&os.PathError{Op: "open", Path: "/dev/ptmx", Err: unix.ENODEV}, "/dev/ptmx has no devpts: mount it on /dev/pts"},
		{&os.PathError{Op: "open", Path: "/dev/ptmx", Err: unix.ENOSPC}, "every pseudoterminal is in use: raise the limit, kernel.pty.max or max= of devpts"},
		{&os.PathError{Op: "open", Path: "/dev/ptmx", Err: unix.EACCES}, "open /dev/ptmx: permission denied"},
	} {
		if got := noPTY(c.err); !errors.As(got, new(PTYError)) || got.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.err, got, c.want)
		}
	}
	if few := (&os.PathError{Op: "open", Path: "/dev/ptmx", Err: unix.EMFILE}); !errors.Is(noPTY(few), unix.EMFILE) {
		t.Errorf("too few descriptors are %v", noPTY(few))
	}
}

// BenchmarkStream measures how fast the output of a rank gets into its log.
func BenchmarkStream(b *testing.B) {
	for name, open := range map[string]Opener{"pipe": OpenPipe, "terminal": OpenPTY} {
		for _, size := range []int{80, 64 << 10} {
			b.Run(name+"/"+strconv.Itoa(size), func(b *testing.B) {
				s, to, err := New(Options{Path: b.TempDir() + "/out", Grew: &notify.Broadcast{}, Seen: func([]byte) {}, Stuck: func(error) {}, End: func() {}}, open)
				if err != nil {
					b.Fatal(err)
				}
				done := make(chan struct{})
				go func() { defer close(done); s.Pump(nil) }()
				line := bytes.Repeat([]byte("x"), size)
				b.SetBytes(int64(size))
				begin := time.Now()
				for b.Loop() {
					if _, err := to.Write(line); err != nil {
						b.Fatal(err)
					}
				}
				_ = to.Close()
				<-done
				b.ReportMetric(float64(s.written)/1e6/time.Since(begin).Seconds(), "MB/s-logged")
				_ = s.log.Close()
			})
		}
	}
}
