package agent

import (
	"net"
	"sync"
)

// listener is a net.Listener that accepts only one connection, which exists already.
type listener struct {
	conn   chan net.Conn
	addr   net.Addr
	once   sync.Once
	closed chan struct{}
}

func newListener(conn net.Conn) *listener {
	l := &listener{conn: make(chan net.Conn, 1), addr: conn.LocalAddr(), closed: make(chan struct{})}
	l.conn <- &watched{conn, l}
	return l
}

// watched is a connection that closes its listener when it is closed.
type watched struct {
	net.Conn
	l *listener
}

func (w *watched) Close() error {
	w.l.Close()
	return w.Conn.Close()
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }
