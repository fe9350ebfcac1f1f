package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

var errBroken = errors.New("broken")

// breaking is a writer that fails after some writes.
type breaking struct {
	bytes.Buffer
	left  int
	short bool
	fails int
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.left == 0 {
		b.fails++
		if b.short {
			return len(p) / 2, nil
		}
		return 0, errBroken
	}
	b.left--
	return b.Buffer.Write(p)
}

func TestWriteError(t *testing.T) {
	w, other := &breaking{left: 1}, &breaking{left: -1}
	s := New(Options{Ranks: 2, Prefix: true, Out: Stream{W: w}, Err: Stream{W: other}})
	output := func(stderr bool, text string) error { return s.Output(0, "", stderr, []byte(text)) }
	if err := errors.Join(output(false, "a\n"), s.Err()); err != nil {
		t.Fatal(err)
	}
	if err := output(false, "b\n"); !errors.Is(err, errBroken) {
		t.Errorf("the failed write gives %v", err)
	}
	for range 3 {
		if err := output(false, "c\n"); err != nil {
			t.Errorf("a later write gives %v", err)
		}
	}
	if err := output(true, "d\n"); err != nil {
		t.Errorf("the other stream gives %v", err)
	}
	s.Say("e")
	if err := errors.Join(s.EndOfStream(0, false), s.Flush(time.Now()), s.Close()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if !errors.Is(s.Err(), errBroken) {
		t.Errorf("Err is %v", s.Err())
	}
	if got, want := w.String()+other.String(), "[0]  a\n[0]! d\ngangrun: e\n"; got != want || w.fails != 1 {
		t.Errorf("%d failed writes, then %q; want 1 and %q", w.fails, got, want)
	}
}

// TestSayError checks that a failed write of Say is reported once, by the next call that returns an error.
func TestSayError(t *testing.T) {
	s := New(Options{Ranks: 1, Prefix: true, Out: Stream{W: io.Discard}, Err: Stream{W: &breaking{short: true}}})
	s.Say("a")
	if !errors.Is(s.Err(), io.ErrShortWrite) {
		t.Errorf("Err is %v", s.Err())
	}
	s.Say("b")
	if err := s.Output(0, "", false, []byte("c\n")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Output gives %v", err)
	}
	if err := s.Output(0, "", false, []byte("c\n")); err != nil {
		t.Errorf("Output then gives %v", err)
	}
}

// TestClosedPipe checks that a closed pipe, as with "| head", gives an error only once, so that the gang can go on.
func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	s := New(Options{Ranks: 1, Prefix: true, Out: Stream{W: w}, Err: Stream{W: io.Discard}})
	if err := s.Output(0, "", false, []byte("a\n")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the first write gives %v, not EPIPE", err)
	}
	if err := s.Output(0, "", false, []byte("b\n")); err != nil {
		t.Errorf("the second write gives %v", err)
	}
}

// TestBackpressure checks that writers wait for the reader, and that nothing is lost.
func TestBackpressure(t *testing.T) {
	r, w := io.Pipe()
	s := New(Options{Ranks: 1, Prefix: true, Out: Stream{W: w}, Err: Stream{W: w}})
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range 100 {
			if err := s.Output(0, "", false, fmt.Appendf(nil, "%d\n", i)); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() { s.Say("hello") })
	go func() { writers.Wait(); w.Close() }()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(got)) {
		switch line {
		case fmt.Sprintf("[0]  %d\n", n):
			n++
		case "gangrun: hello\n":
		default:
			t.Errorf("line %q", line)
		}
	}
	if n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}

// TestBounded writes up to 100 MB without a newline to each kind of stream.
func TestBounded(t *testing.T) {
	const limit = 4 * pieceSize
	chunk := append(bytes.Repeat([]byte("0123456789"), 100_000), "\xff"...)
	for _, text := range []string{"", "\x1b]", "\x1b[", "\r", "\x1b[38;2;1;2;3m"} {
		for _, opts := range []Options{
			{Ranks: 2, Prefix: true}, {Ranks: 2}, {Ranks: 1},
			{Ranks: 2, Prefix: true, Out: Stream{Terminal: true, Colour: true}},
		} {
			opts.Out.W, opts.Err.W = io.Discard, io.Discard
			s := New(opts)
			total := 5_000_000
			if text == "" && opts.Prefix && !opts.Out.Terminal {
				total = 100_000_000
			}
			for sent := 0; sent < total; sent += len(chunk) + len(text) {
				if err := errors.Join(s.Output(0, "", false, []byte(text)), s.Output(0, "", false, chunk)); err != nil {
					t.Fatal(err)
				}
				if held, buf := cap(s.sources[0].held.text), cap(s.out.buf); held > 2*pieceSize || buf > limit {
					t.Fatalf("%q: holds %d bytes of the line, %d of output", text, held, buf)
				}
			}
		}
	}
}

// function is a writer whose values cannot be compared.
type function func([]byte) (int, error)

func (f function) Write(p []byte) (int, error) { return f(p) }

// TestSame checks which streams go to the same place. Lines must stay whole if both streams do.
func TestSame(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	one, two := open(), open()
	var b bytes.Buffer
	closed := open()
	closed.Close()
	for _, test := range []struct {
		name string
		a, b Stream
		want bool
	}{
		{"two buffers", Stream{W: &b}, Stream{W: &bytes.Buffer{}}, false},
		{"one buffer", Stream{W: &b}, Stream{W: &b}, true},
		{"one buffer, not alike", Stream{W: &b}, Stream{W: &b, Colour: true}, false},
		{"one file", Stream{W: one}, Stream{W: one}, true},
		{"one file twice", Stream{W: one}, Stream{W: two}, true},
		{"two files", Stream{W: one}, Stream{W: os.Stdin}, false},
		{"a file and a buffer", Stream{W: one}, Stream{W: &b}, false},
		{"a closed file", Stream{W: one}, Stream{W: closed}, false},
		{"a closed file first", Stream{W: closed}, Stream{W: one}, false},
		{"functions", Stream{W: function(b.Write)}, Stream{W: function(b.Write)}, false},
	} {
		if got := test.a.same(test.b); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}

	newDesk(t, Options{Ranks: 2, Prefix: true, Out: Stream{W: one}, Err: Stream{W: two}},
		out(0, "a"), wait(2*time.Second), say("x"), out(0, "b"), wait(2*time.Second), errOut(0, "y\n"), out(0, "c\n"))
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "[0]  a\ngangrun: x\n[0]+ b\n[0]! y\n[0]+ c\n"; string(got) != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

// TestTogether checks that lines stay whole if many goroutines write at the same time.
func TestTogether(t *testing.T) {
	var w bytes.Buffer
	s := New(Options{Ranks: 8, Prefix: true, Out: Stream{W: &w}, Err: Stream{W: io.Discard, Terminal: true}})
	var callers sync.WaitGroup
	for rank := range 8 {
		callers.Go(func() {
			for range 200 {
				for _, part := range []string{"one ", "two ", "three\n"} {
					if err := s.Output(rank, "", false, []byte(part)); err != nil {
						t.Error(err)
					}
				}
				s.Status("working")
				s.Say("words")
			}
			if err := errors.Join(s.Flush(time.Time{}), s.EndOfStream(rank, false), s.Err()); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := strings.Count(w.String(), "]  one two three\n"); n != 1600 || strings.Count(w.String(), "\n") != n {
		t.Errorf("%d whole lines of %d, want 1600", n, strings.Count(w.String(), "\n"))
	}
}

func TestFileStream(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tty := openTerminal(t, 101, 42)
	for _, test := range []struct {
		name             string
		f                *os.File
		env              map[string]string
		terminal, colour bool
		cols, lines      int
	}{
		{"file", file, map[string]string{"TERM": "xterm"}, false, false, 0, 0},
		{"terminal", tty, map[string]string{"TERM": "xterm"}, true, true, 101, 42},
		{"terminal, NO_COLOR", tty, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false, 101, 42},
		{"terminal, NO_COLOR empty", tty, map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true, true, 101, 42},
		{"terminal, dumb", tty, map[string]string{"TERM": "dumb"}, false, false, 101, 42},
		{"terminal, nothing known", tty, nil, false, false, 101, 42},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := FileStream(test.f, func(name string) string { return test.env[name] })
			cols, lines := s.Size()
			if s.W != test.f || s.Terminal != test.terminal || s.Colour != test.colour || cols != test.cols || lines != test.lines {
				t.Errorf("got %+v of %d by %d", s, cols, lines)
			}
		})
	}
}

// openTerminal returns a pseudo-terminal of the given size.
func openTerminal(t *testing.T, cols, lines uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	control := func(request uintptr, arg unsafe.Pointer) {
		t.Helper()
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(arg)); errno != 0 {
			t.Fatal(errno)
		}
	}
	var number, unlock int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{lines, cols}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}

func TestColumns(t *testing.T) {
	size := func() (int, int) { return 132, 40 }
	for _, c := range []struct {
		name     string
		out, err Stream
		want     int
	}{
		{"a terminal", Stream{W: io.Discard, Terminal: true, Size: size}, Stream{W: io.Discard, Terminal: true, Size: size}, 132},
		{"messages go to a file", Stream{W: io.Discard, Terminal: true, Size: size}, Stream{W: io.Discard}, 0},
		{"a terminal of unknown size", Stream{W: io.Discard}, Stream{W: io.Discard, Terminal: true}, 80},
		{"no terminal", Stream{W: io.Discard}, Stream{W: io.Discard}, 0},
	} {
		if have := New(Options{Ranks: 1, Out: c.out, Err: c.err}).Columns(); have != c.want {
			t.Errorf("%s: %d columns, want %d", c.name, have, c.want)
		}
	}
}
