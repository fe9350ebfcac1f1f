package meet

import (
	"context"
	"crypto/hmac"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// answerer answers, on a port, peers that know the secret of the meeting.
type answerer struct {
	listener net.Listener
	wg       sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

// answer opens a port on an address, and answers there until close. If the host does not have the address, because the
// address is translated on the way, the port is open on all addresses.
func answer(address string, question, answer []byte) (*answerer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		l, err = net.Listen("tcp", ":0")
	}
	if err != nil {
		return nil, err
	}
	a := &answerer{listener: l}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.wg.Go(func() {
		slots := make(chan struct{}, reachAtOnce)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				select { // the host is short of descriptors or memory at the moment
				case <-time.After(10 * time.Millisecond):
					continue
				case <-a.ctx.Done():
					return
				}
			}
			slots <- struct{}{} // freed within reachLimit
			a.wg.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(a.ctx, reachLimit)
				defer cancel()
				a.reply(ctx, conn, question, answer)
			})
		}
	})
	return a, nil
}

func (a *answerer) port() int { return a.listener.Addr().(*net.TCPAddr).Port }

func (a *answerer) reply(ctx context.Context, conn net.Conn, question, answer []byte) {
	defer closing(ctx, conn)()
	asked := make([]byte, len(question))
	if _, err := io.ReadFull(conn, asked); err != nil || !hmac.Equal(asked, question) {
		return
	}
	// The peer notices if the answer does not arrive.
	if _, err := conn.Write(answer); err == nil {
		serveLink(conn)
	}
}

func (a *answerer) close() {
	a.cancel()
	_ = a.listener.Close()
	a.wg.Wait()
}

// closing closes conn when ctx ends. The returned function also closes conn. If ctx ends, the peer sees a reset, and
// not the end of a complete answer.
func closing(ctx context.Context, conn net.Conn) func() {
	stop := context.AfterFunc(ctx, func() {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	return func() {
		if stop() {
			_ = conn.Close()
		}
	}
}
