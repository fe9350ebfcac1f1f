package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/notify"
)

// pumped is a stream with a Pump that the test runs.
type pumped struct {
	*Stream
	to   *os.File      // the end to which the rank would write
	tell chan error    // gets the errors with which Stuck was called
	done chan struct{} // is closed when Pump has returned
	free chan struct{} // closing it releases Pump

	mu     sync.Mutex
	seen   []byte // the pieces that Seen got
	widest int    // length of the longest piece
	ended  int    // number of calls of End
}

func newPumped(t *testing.T) *pumped { return newPumpedFrom(t, OpenPipe) }

func newPumpedFrom(t *testing.T, open Opener) *pumped {
	t.Helper()
	p := &pumped{tell: make(chan error, 100), done: make(chan struct{}), free: make(chan struct{})}
	var err error
	p.Stream, p.to, err = New(Options{
		Rank: 3, Path: filepath.Join(t.TempDir(), "rank-0003.out"), Grew: &notify.Broadcast{},
		Seen: func(piece []byte) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.seen, p.widest = append(p.seen, piece...), max(p.widest, len(piece))
		},
		Stuck: func(err error) { p.tell <- err },
		End:   func() { p.mu.Lock(); defer p.mu.Unlock(); p.ended++ },
	}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.log.Close(); _ = p.from.Close(); _ = p.to.Close() })
	return p
}

func (p *pumped) start() {
	go func() { defer close(p.done); p.Pump(p.free) }()
}

// bytesOf returns n bytes in which no two parts are equal.
func bytesOf(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.Bytes()[:n]
}

// whole checks that the log, Seen and the counter got exactly text.
func (p *pumped) whole(t *testing.T, text []byte) {
	t.Helper()
	logged, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(logged, text) {
		t.Errorf("the log has %d bytes and is not the %d that were written", len(logged), len(text))
	}
	if !bytes.Equal(p.seen, text) {
		t.Errorf("seen were %d bytes, not the %d that were written", len(p.seen), len(text))
	}
	if written, closed := p.state(); written != int64(len(text)) || !closed {
		t.Errorf("the state is %d bytes, closed %t; want %d and closed", written, closed, len(text))
	}
	if p.lines != bytes.Count(text, []byte("\n")) {
		t.Errorf("%d lines are counted, want %d", p.lines, bytes.Count(text, []byte("\n")))
	}
	if p.ended != 1 {
		t.Errorf("the end was reported %d times", p.ended)
	}
}

// TestPump checks that every byte goes to the log, whether the rank writes much or little at once.
func TestPump(t *testing.T) {
	text := bytesOf(3 << 20)
	for name, size := range map[string]int{"much": 1_000_000, "little": 777} {
		t.Run(name, func(t *testing.T) {
			p := newPumped(t)
			// The pipe is full before Pump starts, so that Pump needs larger buffers.
			if err := unix.SetNonblock(int(p.to.Fd()), true); err != nil {
				t.Fatal(err)
			}
			ahead, err := unix.Write(int(p.to.Fd()), text)
			if err != nil || ahead < 16*firstBuffer {
				t.Fatalf("the pipe took %d bytes, %v", ahead, err)
			}
			if err := unix.SetNonblock(int(p.to.Fd()), false); err != nil {
				t.Fatal(err)
			}
			p.start()
			for piece := range slices.Chunk(text[ahead:], size) {
				if _, err := p.to.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.to.Close(); err != nil {
				t.Fatal(err)
			}
			<-p.done
			p.whole(t, text)
			if p.widest <= firstBuffer || p.widest > largeBuffer {
				t.Errorf("the longest piece had %d bytes: the buffer has not grown, or too far", p.widest)
			}
		})
	}
}

// TestPumpOfNothing checks that a rank that prints nothing has an empty log.
func TestPumpOfNothing(t *testing.T) {
	p := newPumped(t)
	p.start()
	if err := p.to.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	p.whole(t, nil)
	if lines := p.Evidence("h1"); len(lines) != 0 {
		t.Errorf("nothing is evidence: %v", lines)
	}
}

// limitFiles limits the size of files that this process can write, in bytes.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}); err != nil {
		t.Fatal(err)
	}
}

// TestPumpWaitsForSpace checks that Pump waits and calls Stuck while the log cannot grow. When it can grow again, no
// byte may be lost or written twice.
func TestPumpWaitsForSpace(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	text := bytesOf(200_000)
	p := newPumped(t)
	limitFiles(t, 5001)
	p.start()
	wrote := make(chan error, 1)
	go func() {
		_, err := p.to.Write(text)
		wrote <- errors.Join(err, p.to.Close())
	}()
	for range 2 { // Pump tries again
		if err := <-p.tell; !errors.Is(err, unix.EFBIG) || err.Error() != "write the log of rank 3: write "+p.Path+": file too large" {
			t.Errorf("told was %v", err)
		}
	}
	if info, err := os.Stat(p.Path); err != nil || info.Size() != 5001 {
		t.Errorf("the log has %d bytes, %v; want the 5001 that fit", info.Size(), err)
	}
	if written, closed := p.state(); written > 5001 || closed {
		t.Errorf("the state is %d bytes, closed %t, while the pump waits", written, closed)
	}
	select {
	case err := <-wrote:
		t.Errorf("the rank has written everything (%v) while nobody could take it", err)
	default:
	}
	limitFiles(t, unix.RLIM_INFINITY)
	<-p.done
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	p.whole(t, text)
}

// TestPumpIsReleased checks that a Pump that waits for space ends when it is released, and that the rank gets an
// error.
func TestPumpIsReleased(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	p := newPumped(t)
	limitFiles(t, 10)
	p.start()
	if _, err := p.to.WriteString("more than fits"); err != nil {
		t.Fatal(err)
	}
	<-p.tell
	close(p.free)
	<-p.done
	if written, closed := p.state(); written != 0 || !closed {
		t.Errorf("the state is %d bytes, closed %t; want 0 and closed", written, closed)
	}
	if _, err := p.to.WriteString("x"); !errors.Is(err, unix.EPIPE) {
		t.Errorf("the rank can still write: %v", err)
	}
	limitFiles(t, unix.RLIM_INFINITY)
}

// TestCutInput checks that a Pump that is cut off while it writes to a slow log still writes everything that the rank had
// printed, although another process keeps the other end open.
func TestCutInput(t *testing.T) {
	for name, open := range map[string]Opener{"pipe": OpenPipe, "terminal": OpenPTY} {
		t.Run(name, func(t *testing.T) {
			p := newPumpedFrom(t, open)
			first, slow := make(chan bool), make(chan bool)
			seen, once := p.Seen, sync.Once{}
			p.Seen = func(piece []byte) {
				once.Do(func() { close(first); <-slow })
				seen(piece)
			}
			p.start()
			text := bytesOf(3000)
			if _, err := p.to.Write(text[:10]); err != nil {
				t.Fatal(err)
			}
			<-first
			if _, err := p.to.Write(text[10:]); err != nil {
				t.Fatal(err)
			}
			if err := p.CutInput(); err != nil {
				t.Fatal(err)
			}
			close(p.free)
			close(slow)
			<-p.done
			p.whole(t, text)
			if p.Loss() != nil || !p.truncated {
				t.Errorf("lost %v, truncated %t; want nothing lost, and that more could have come", p.Loss(), p.truncated)
			}
		})
	}
}

// TestDrainOfSlowLog checks that Drain waits for what was read and is not in the log yet.
func TestDrainOfSlowLog(t *testing.T) {
	p := newPumped(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	real := p.log
	p.log = w
	defer func() { p.log = real }()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil { // Fd also makes its writes block
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	p.start()
	if _, err := p.to.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(3*quiet, func() { _, _ = io.ReadFull(r, make([]byte, 4096+10)) })
	defer timer.Stop()
	began := time.Now()
	if Drain(p.Stream); p.Written() != 10 && time.Since(began) < drainLimit {
		t.Errorf("Drain returned after %s, when the log had %d of 10 bytes", time.Since(began), p.Written())
	}
	_ = p.to.Close()
	<-p.done
}

// say stores pieces, one per second.
func (p *pumped) say(t *testing.T, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !p.store([]byte(piece), p.free) {
			t.Fatal("not stored")
		}
		time.Sleep(time.Second)
	}
}

// TestEvidence checks that the last lines have their numbers in the file, and the times at which they came.
func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPumped(t)
		start := time.Now()
		p.say(t, "one\ntw", "o\n", "\nbar  1%\rbar 99%\r\nfi\xffve\r\n", "no end")
		got := ""
		for _, line := range p.Evidence("h1") {
			if line.Host != "h1" || line.Rank != 3 || line.File != p.Path || line.Source != "stdout" {
				t.Errorf("got %+v, want a line of rank 3 on h1", line)
			}
			got += fmt.Sprintf("%d after %s: %q\n", line.Line, line.Time.Sub(start), line.Text)
		}
		// The time of a line is the time of its beginning.
		want := `1 after 0s: "one"
2 after 0s: "two"
3 after 2s: ""
4 after 2s: "bar 99%"
5 after 2s: "fi` + "\uFFFD" + `ve"
6 after 3s: "no end"
`
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		p.Stderr = true
		if lines := p.Evidence("h1"); len(lines) != 6 || lines[0].Source != "stderr" {
			t.Errorf("got %+v, want lines of stderr", lines)
		}
	})
}

// TestEvidenceWithoutLog checks that there is a line of evidence that says so if the log cannot be read.
func TestEvidenceWithoutLog(t *testing.T) {
	p := newPumped(t)
	if !p.store([]byte("x\n"), p.free) {
		t.Fatal("not stored")
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	lines := p.Evidence("h1")
	if len(lines) != 1 || lines[0].Source != "agent" || lines[0].Rank != 3 || lines[0].File != p.Path {
		t.Errorf("got %+v, want one line of the agent", lines)
	}
}

// TestTail checks that a tail begins at the beginning of a line if it has one.
func TestTail(t *testing.T) {
	for _, c := range []struct {
		name, text string
		limit      int64
		want       string
		line       int
		offset     int64
	}{
		{"all", "one\ntwo\n", 100, "one\ntwo\n", 1, 0},
		{"exactly all", "one\ntwo\n", 8, "one\ntwo\n", 1, 0},
		{"all but a byte", "one\ntwo\n", 7, "two\n", 2, 4},
		{"mid-line", "one\ntwo\nthree\n", 8, "three\n", 3, 8},
		{"at the beginning of a line", "one\ntwo\nthree\n", 10, "two\nthree\n", 2, 4},
		{"on a line end", "one\ntwo\nthree\n", 11, "two\nthree\n", 2, 4},
		{"open end", "one\ntwo\nthr", 5, "thr", 3, 8},
		{"one long line", "one\nabcdefghij", 4, "ghij", 2, 10},
		{"one long line that has ended", "one\nabcdefghij\n", 4, "hij\n", 2, 11},
		{"nothing", "", 4, "", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPumped(t)
			if !p.store([]byte(c.text), p.free) {
				t.Fatal("not stored")
			}
			text, line, offset, err := p.tail(c.limit)
			if err != nil || string(text) != c.want || line != c.line || offset != c.offset {
				t.Errorf("got %q, line %d, offset %d, %v; want %q, line %d, offset %d", text, line, offset, err, c.want, c.line, c.offset)
			}
		})
	}
}

// TestWhen checks that the times of the last pieces are kept. Older data gets the time of the oldest of these.
func TestWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPumped(t)
		start := time.Now()
		const pieces = keptMarks + 40
		for range pieces {
			p.say(t, "ab")
		}
		if len(p.marks) > keptMarks {
			t.Errorf("%d times are kept, want at most %d", len(p.marks), keptMarks)
		}
		oldest := p.when(0)
		if oldest.Before(start) || oldest.After(start.Add((pieces-keptMarks/2)*time.Second)) {
			t.Errorf("the oldest time is %s after the start: too few are kept", oldest.Sub(start))
		}
		for i := pieces - keptMarks/2; i < pieces; i++ {
			for offset := int64(2 * i); offset < int64(2*i+2); offset++ {
				if got := p.when(offset).Sub(start); got != time.Duration(i)*time.Second {
					t.Fatalf("byte %d came after %s, want %d s", offset, got, i)
				}
			}
		}
		if got := p.when(2 * pieces); !got.IsZero() {
			t.Errorf("a byte that has not come came at %s", got)
		}
	})
}

func TestClean(t *testing.T) {
	long := bytes.Repeat([]byte("x"), TailLine+10)
	for _, c := range []struct{ name, line, want string }{
		{"plain", "text\n", "text"},
		{"no end", "text", "text"},
		{"Windows", "text\r\n", "text"},
		{"many ends", "text\r\r\n", "text"},
		{"redrawn", "10%\r20%\r30%", "30%"},
		{"redrawn, at its end", "10%\r30%\r", "30%"},
		{"only ends", "\r\n", ""},
		{"empty", "", ""},
		{"blanks stay", "  a \n", "  a "},
		{"not UTF-8", "a\xff\xfeb\n", "a\uFFFDb"},
		{"too long", string(long), string(long[:TailLine])},
		{"cut in a letter", string(long[:TailLine-1]) + "é\n", string(long[:TailLine-1]) + "\uFFFD"},
	} {
		if got := Clean([]byte(c.line)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNewStreamOverwritesNothing checks that New does not overwrite a log that exists.
func TestNewStreamOverwritesNothing(t *testing.T) {
	path := agenttest.WriteFile(t, filepath.Join(t.TempDir(), "rank-0000.out"), "mine", 0o644)
	if _, _, err := New(Options{Path: path}, OpenPipe); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("it now holds %q, %v", data, err)
	}
}
