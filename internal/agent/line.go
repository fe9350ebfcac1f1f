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

	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// line is how the controller reaches its agent: a socket pair on the controller's
// own machine, and elsewhere one stream over whatever connections are made to the
// agent's socket. A stream of another ID is a controller that takes over.
type line struct {
	conn net.Conn // the socket pair; nil elsewhere

	// What follows is zero on the controller's own machine.
	dir      string // the agent's own, which its socket is in
	listener *net.UnixListener
	grace    atomic.Int64 // how long the agent lives without a word, a Duration
	keep     atomic.Bool  // what is in its spool outlives the agent
	carriers sync.WaitGroup
	served   chan struct{} // closed when the last stream is being ended

	mu       sync.Mutex
	stream   *resumable.Conn
	known    map[resumable.ID]bool // streams that there have been
	next     bool                  // stream is a controller's that takes over, and is not served yet
	begun    time.Time             // of stream
	doubted  time.Time             // since when its controller has been silent for too long; zero while it is not
	orphaned bool
}

// firstGrace is how long an agent waits for the first word of its controller.
const firstGrace = 20 * time.Second

// orphanEvery is how often an agent looks whether its controller is silent. It looks
// again after orphanSure: what was said while this host stood still may not have been
// heard yet.
const (
	orphanEvery = 250 * time.Millisecond
	orphanSure  = 2 * orphanEvery
)

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
	l := &line{dir: dir, listener: listener, served: make(chan struct{}), known: map[resumable.ID]bool{}}
	l.grace.Store(int64(firstGrace))
	l.open(id)
	return l, nil
}

// open begins a stream. l.mu is held, or l is not shared yet.
func (l *line) open(id resumable.ID) {
	l.stream, l.begun = resumable.New(resumable.Options{ID: id}), time.Now()
	l.known[id] = true
}

// current is what to serve on.
func (l *line) current() net.Conn {
	if l.conn != nil {
		return l.conn
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = false
	return held{l.stream}
}

// awaited reports whether a controller takes over that is not served yet.
func (l *line) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// held is a stream that is not ended by who reads it: its end tells the controller
// that every process of the agent is gone.
type held struct{ *resumable.Conn }

// Close ends a Read that waits, and all that follow.
func (h held) Close() error { return h.SetReadDeadline(time.Unix(1, 0)) }

// errOrphaned and errReplaced are why a stream is given up.
var (
	errOrphaned = errors.New("nothing was heard of the controller for too long")
	errReplaced = errors.New("another controller has taken over")
)

// dismissed is what a controller is told that is not served any more.
const dismissed = "another controller has taken over, or the agent is ending"

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
				l.look()
			}
		}
	})
}

// look gives a controller up that has been silent for too long.
func (l *line) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.stream.Heard()
	if heard.IsZero() {
		heard = l.begun
	}
	switch {
	case l.orphaned:
	case time.Since(heard) <= time.Duration(l.grace.Load()):
		l.doubted = time.Time{}
	case l.doubted.IsZero():
		l.doubted = time.Now()
	case time.Since(l.doubted) >= orphanSure:
		l.orphaned = true
		l.stream.Abort(errOrphaned)
	}
}

// meetLimit bounds how long a connection may take to say whose it is, or to be refused.
const meetLimit = 30 * time.Second

func (l *line) carry(ctx context.Context, carrier *net.UnixConn) {
	meeting, cancel := context.WithTimeout(ctx, meetLimit)
	defer cancel()
	pending, err := resumable.Accept(meeting, carrier)
	if err != nil {
		return
	}
	if stream := l.find(pending.ID()); stream != nil {
		_ = stream.CarryPending(ctx, pending) // its end says nothing of the stream's
	} else {
		_ = pending.Refuse(meeting, dismissed)
	}
}

// find returns the stream of an ID. One that has never been is that of a
// controller that takes over.
func (l *line) find(id resumable.ID) *resumable.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case id == l.stream.ID():
	case l.known[id] || l.orphaned || notify.Closed(l.served):
		return nil
	default:
		before := l.stream
		l.open(id)
		l.next = true
		before.Abort(errReplaced)
	}
	return l.stream
}

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
	l.mu.Lock()
	close(l.served)
	stream, orphaned := l.stream, l.orphaned
	l.mu.Unlock()
	_ = stream.Close()
	_ = l.listener.Close()
	taken := make(chan struct{})
	go func() { l.carriers.Wait(); close(taken) }()
	notify.Wait(taken, farewell)
	stop()
	<-taken
	return orphaned
}
