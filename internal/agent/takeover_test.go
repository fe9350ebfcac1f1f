package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/internal/wire"
)

// fed has the streams of a gang of one rank. The rank does not read its standard input.
type fed struct {
	streams
	stdin *os.File
}

func (f fed) Stdin(context.Context, int) (*os.File, error) { return f.stdin, nil }

// newFed returns such a gang, and the end of the pipe from which the rank would read. If blocking is true, writes of
// the agent block.
func newFed(t *testing.T, blocking bool) (g *startedGang, in *os.File) {
	t.Helper()
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], !blocking); err != nil {
		t.Fatal(err)
	}
	in = os.NewFile(uintptr(fds[0]), "in")
	out := os.NewFile(uintptr(fds[1]), "out")
	t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
	return &startedGang{streams: fed{stdin: out}}, in
}

// full waits until a pipe is full.
func full(t *testing.T, in *os.File) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		if n >= 64<<10 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes were written", n)
		}
	}
}

// controller is a controller that has joined an agent.
type controller struct {
	wire.AgentClient
	leave func()
}

func join(t *testing.T, l *link) *controller {
	t.Helper()
	stream := resumable.New(resumable.Options{ID: resumable.NewID()})
	carrier, err := net.Dial("unix", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var carrying sync.WaitGroup
	carrying.Go(func() { _ = stream.Carry(ctx, carrier) })
	conns := make(chan net.Conn, 1)
	conns <- stream
	g, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return nil, errors.New("it is broken")
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	return &controller{wire.NewAgentClient(g), func() { _ = g.Close(); _ = stream.Close(); cancel(); carrying.Wait() }}
}

// TestOrphaned checks that the agent gives up a controller only if the controller was silent for too long, and is
// still silent at the next check. If the agent's host stood still, messages that arrived meanwhile are read only after
// that.
func TestOrphaned(t *testing.T) {
	l := &link{streams: map[resumable.ID]bool{}}
	l.open(resumable.NewID())
	l.grace.Store(int64(time.Minute))
	long := time.Now().Add(-time.Hour)
	for _, step := range []struct {
		name           string
		begun, doubted time.Time
		doubt, orphan  bool
	}{
		{"in time", time.Now(), time.Time{}, false, false},
		{"silent", long, time.Time{}, true, false},
		{"heard after all", time.Now(), long, false, false},
		{"silent, looked again too soon", long, time.Now().Add(time.Hour), true, false},
		{"silent and still so", long, long, true, true},
	} {
		l.begun, l.silentSince = step.begun, step.doubted
		if l.checkSilence(); !l.silentSince.IsZero() != step.doubt || l.orphaned != step.orphan {
			t.Errorf("%s: doubted since %v, orphaned: %t", step.name, l.silentSince, l.orphaned)
		}
	}
	if _, err := l.stream.Read(make([]byte, 1)); err != errOrphaned {
		t.Errorf("its stream ends with %v", err)
	}
}

// TestTakeover checks that the agent answers a new controller even if a request of the earlier one is stuck. It may be
// stuck because a rank does not read its standard input, or in a file system that hangs, which no context can end.
func TestTakeover(t *testing.T) {
	for _, test := range []struct {
		name     string
		blocking bool
	}{{"a rank that does not read", false}, {"a handler that is stuck", true}} {
		t.Run(test.name, func(t *testing.T) {
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l := &link{dir: t.TempDir(), listener: listener, served: make(chan struct{}), streams: map[resumable.ID]bool{}}
			l.grace.Store(int64(10 * time.Minute))
			l.open(resumable.NewID())
			s := newServer(nil, nil, l)
			g, in := newFed(t, test.blocking)
			s.gangs.started["g"] = g
			ctx, cancel := context.WithCancel(t.Context())
			l.serve(ctx)
			served := make(chan error, 1)
			go func() { served <- s.serve(ctx) }()
			defer func() {
				_ = in.Close() // ends a write that is stuck
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
				l.close(cancel)
			}()

			first := join(t, l)
			defer first.leave()
			feed, err := first.Feed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := feed.Send(&wire.FeedRequest{Gang: "g", Data: make([]byte, 128<<10)}); err != nil {
				t.Fatal(err)
			}
			full(t, in)

			second := join(t, l)
			defer second.leave()
			limited, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if _, err := second.Clock(limited, &wire.ClockRequest{}); err != nil {
				t.Fatalf("the second controller is not answered: %v", err)
			}
			if test.blocking {
				return
			}
			// The stream of the first controller ends, and the standard input of the rank with it.
			out := g.streams.(fed).stdin
			for begun := time.Now(); ; time.Sleep(time.Millisecond) {
				if _, err := out.Stat(); errors.Is(err, os.ErrClosed) {
					break
				}
				if time.Since(begun) > time.Minute {
					t.Fatal("the feed goes on")
				}
			}
			if n, err := io.Copy(io.Discard, in); err != nil || n != 64<<10 {
				t.Errorf("the rank reads %d bytes, %v; want what the pipe holds and the end", n, err)
			}
		})
	}
}
