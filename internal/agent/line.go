package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/resumable"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// line is how the controller reaches its agent: a socket pair on the controller's
// own machine, and elsewhere one stream over whatever connections are made to the
// agent's socket.
type line struct {
	conn net.Conn

	// What follows is zero on the controller's own machine.
	dir      string // the agent's own, which its socket is in
	listener *net.UnixListener
	stream   *resumable.Conn
	begun    time.Time
	grace    atomic.Int64 // how long the agent lives without a word, a Duration
	orphaned atomic.Bool
	served   chan struct{} // closed when the stream is being ended
	carriers sync.WaitGroup
}

// firstGrace is how long an agent waits for the first word of its controller.
const firstGrace = 20 * time.Second

// orphanEvery is how often an agent looks whether its controller is silent.
const orphanEvery = 250 * time.Millisecond

// newLine takes over the descriptor that an agent finds: a connection, or a socket
// that listens.
func newLine(file *os.File) (*line, error) {
	listens, err := unix.GetsockoptInt(int(file.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err == nil && listens == 0 {
		var conn net.Conn
		if conn, err = net.FileConn(file); err == nil {
			return &line{conn: conn}, nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("descriptor %d is no connection: %w", watchdog.ConnFD, err), errors.New("this command is for gangrun's own use"))
	}
	any, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := any.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("the socket %s is no unix socket", any.Addr())
	}
	dir := filepath.Dir(listener.Addr().String())
	id, err := resumable.ParseID(filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	l := &line{dir: dir, listener: listener, stream: resumable.New(resumable.Options{ID: id}), begun: time.Now(), served: make(chan struct{})}
	l.conn = held{l.stream}
	l.grace.Store(int64(firstGrace))
	return l, nil
}

// errOrphaned is why an agent ends that nobody has spoken to.
var errOrphaned = errors.New("nothing was heard of the controller for too long")

// serve takes connections until ctx ends, and gives the controller up when it has
// been silent for too long.
func (l *line) serve(ctx context.Context) {
	if l.listener == nil {
		return
	}
	l.carriers.Go(func() {
		for {
			carrier, err := l.listener.AcceptUnix()
			if err != nil {
				return // closed
			}
			l.carriers.Go(func() { l.carry(ctx, carrier) })
		}
	})
	l.carriers.Go(func() {
		tick := time.NewTicker(orphanEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.served:
				return
			case <-tick.C:
			}
			heard := l.stream.Heard()
			if heard.IsZero() {
				heard = l.begun
			}
			if time.Since(heard) > time.Duration(l.grace.Load()) {
				l.orphaned.Store(true)
				l.stream.Abort(errOrphaned)
				return
			}
		}
	})
}

func (l *line) carry(ctx context.Context, carrier *net.UnixConn) {
	pending, err := resumable.Accept(ctx, carrier)
	if err != nil {
		return
	}
	_ = l.stream.CarryPending(ctx, pending) // refuses what is for another stream; its end says nothing of the stream's
}

// held is a stream that is not ended by who reads it: its end tells the controller
// that every process of the agent is gone.
type held struct{ *resumable.Conn }

// Close ends a Read that waits, and all that follow.
func (h held) Close() error { return h.SetReadDeadline(time.Unix(1, 0)) }

// farewell bounds the wait for the controller to take the agent's last word.
const farewell = time.Second

// close ends the line, and stop what serves it; orphaned says that the controller
// had gone silent.
func (l *line) close(stop context.CancelFunc) (orphaned bool) {
	if l.listener == nil {
		stop()
		_ = l.conn.Close()
		return false
	}
	close(l.served)
	_ = l.stream.Close()
	_ = l.listener.Close()
	taken := make(chan struct{})
	go func() { l.carriers.Wait(); close(taken) }()
	select {
	case <-taken:
	case <-time.After(farewell):
	}
	stop()
	<-taken
	return l.orphaned.Load()
}
