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

// link is the connection between the controller and its agent. On the controller's own machine, it is a socket pair.
// Elsewhere, it is one stream. The stream continues when there is a new connection to the agent's socket. If a
// connection has a stream with another ID, it comes from a controller that takes over.
type link struct {
	conn net.Conn // the socket pair; nil on another machine

	// The fields below are zero on the controller's own machine.
	dir      string // the agent's own directory, which has the socket of the agent
	listener *net.UnixListener
	grace    atomic.Int64 // how long the agent lives without contact, a time.Duration
	keep     atomic.Bool  // the files in the agent's spool stay when the agent ends
	carriers sync.WaitGroup
	served   chan struct{} // closed by close; no new stream is accepted after that

	mu          sync.Mutex
	stream      *resumable.Conn
	streams     map[resumable.ID]bool // all streams so far
	successor   bool                  // stream belongs to a controller that takes over, and is not served yet
	begun       time.Time             // when stream began
	silentSince time.Time             // when silence first exceeded grace; zero if it does not
	orphaned    bool
}

// firstGrace is how long an agent waits for the first contact with its controller.
const firstGrace = 20 * time.Second

// orphanEvery is how often an agent checks the time since the last contact. If that time is too long, the agent checks
// again after orphanConfirm. If this host was suspended, the agent may not have read yet what the controller sent
// meanwhile.
const (
	orphanEvery   = 250 * time.Millisecond
	orphanConfirm = 2 * orphanEvery
)

// acceptAgain is how long an agent waits before it accepts connections again after an error.
const acceptAgain = 10 * time.Millisecond

// newLink returns the link for watchdog.ConnFD, which is a connection or a listening socket.
func newLink(file *os.File) (*link, error) {
	listens, err := unix.GetsockoptInt(int(file.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err == nil && listens == 0 {
		var conn net.Conn
		if conn, err = net.FileConn(file); err == nil {
			return &link{conn: conn}, nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("descriptor %d is not a connection: %w", watchdog.ConnFD, err), errors.New("this command is for gangrun's own use"))
	}
	any, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := any.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("the socket %s is not a unix socket", any.Addr())
	}
	dir := filepath.Dir(listener.Addr().String())
	id, err := resumable.ParseID(filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	l := &link{dir: dir, listener: listener, served: make(chan struct{}), streams: map[resumable.ID]bool{}}
	l.grace.Store(int64(firstGrace))
	l.open(id)
	return l, nil
}

// open begins a stream. l.mu is held, or l is not shared yet.
func (l *link) open(id resumable.ID) {
	l.stream, l.begun = resumable.New(resumable.Options{ID: id}), time.Now()
	l.streams[id] = true
}

// current returns the connection to serve.
func (l *link) current() net.Conn {
	if l.conn != nil {
		return l.conn
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.successor = false
	return held{l.stream}
}

// successorWaits reports whether a controller that takes over is not served yet.
func (l *link) successorWaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.successor
}

// held is a stream that Close does not end. The end of the stream tells the controller that all processes of the agent
// are gone.
type held struct{ *resumable.Conn }

// Close ends a Read that is waiting, and all later calls of Read.
func (h held) Close() error { return h.SetReadDeadline(time.Unix(1, 0)) }

// errOrphaned and errReplaced are the reasons to abort a stream.
var (
	errOrphaned = errors.New("the last contact with the controller was too long ago")
	errReplaced = errors.New("another controller has taken over")
)

// refusal is the message to a controller that is not served any more.
const refusal = "another controller has taken over, or the agent is ending"

// serve accepts connections until ctx ends. It aborts the stream of a controller that has been silent for too long.
func (l *link) serve(ctx context.Context) {
	if l.listener == nil {
		return
	}
	l.carriers.Go(func() {
		for {
			carrier, err := l.listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many files are open, for instance
				select {
				case <-time.After(acceptAgain):
					continue
				case <-l.served:
					return
				}
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
				l.checkSilence()
			}
		}
	})
}

// checkSilence aborts the stream of a controller that has been silent for too long.
func (l *link) checkSilence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	lastContact := l.stream.Heard()
	if lastContact.IsZero() {
		lastContact = l.begun
	}
	switch {
	case l.orphaned:
	case time.Since(lastContact) <= time.Duration(l.grace.Load()):
		l.silentSince = time.Time{}
	case l.silentSince.IsZero():
		l.silentSince = time.Now()
	case time.Since(l.silentSince) >= orphanConfirm:
		l.orphaned = true
		l.stream.Abort(errOrphaned)
	}
}

// greetingLimit limits the time in which a connection must name its stream, or in which it is refused.
const greetingLimit = 30 * time.Second

func (l *link) carry(ctx context.Context, carrier *net.UnixConn) {
	meeting, cancel := context.WithTimeout(ctx, greetingLimit)
	defer cancel()
	pending, err := resumable.Accept(meeting, carrier)
	if err != nil {
		return
	}
	if stream := l.find(pending.ID()); stream != nil {
		_ = stream.CarryPending(ctx, pending) // the stream lives longer than its connections
	} else {
		_ = pending.Refuse(meeting, refusal)
	}
}

// find returns the stream with an ID. A new ID belongs to a controller that takes over.
func (l *link) find(id resumable.ID) *resumable.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case id == l.stream.ID():
	case l.streams[id] || l.orphaned || notify.Closed(l.served):
		return nil
	default:
		before := l.stream
		l.open(id)
		l.successor = true
		before.Abort(errReplaced)
	}
	return l.stream
}

// lastReplyLimit limits the wait until the controller has read the agent's last reply.
const lastReplyLimit = time.Second

// close ends the link. It calls stop to end the server that serves the link. orphaned is true if the controller had
// been silent for too long.
func (l *link) close(stop context.CancelFunc) (orphaned bool) {
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
	notify.Wait(taken, lastReplyLimit)
	stop()
	<-taken
	return orphaned
}
