package pmi1

import (
	"io"
	"net"
	"strconv"
	"time"
)

// Limits for peers that have not identified themselves yet. maxStrangers limits their number, and patience the time
// that they may take. Without these limits, such peers could block the port.
const (
	maxStrangers = 256
	patience     = 30 * time.Second
)

// accept admits ranks until the listener is closed.
func (s *Server) accept(listener *net.TCPListener, admit func(*net.TCPConn, int) (int, bool)) {
	strangers := make(chan struct{}, maxStrangers)
	for {
		peer, err := listener.AcceptTCP()
		if err != nil {
			// The process may be out of descriptors for a while.
			pause := time.NewTimer(10 * time.Millisecond)
			select {
			case <-s.closing:
				pause.Stop()
				return
			case <-pause.C:
				continue
			}
		}
		select {
		case strangers <- struct{}{}:
		default:
			peer.Close()
			continue
		}
		if !s.begin(peer) {
			return
		}
		go func() {
			defer s.end(peer)
			c := newConn(s, peer)
			rank, ok := s.admit(c, peer, admit)
			<-strangers
			if ok {
				s.serve(c, rank)
			}
		}()
	}
}

// admit reads the message by which a peer identifies itself.
func (s *Server) admit(c *conn, peer *net.TCPConn, admit func(*net.TCPConn, int) (int, bool)) (int, bool) {
	peer.SetReadDeadline(time.Now().Add(patience))
	line, err := c.in.ReadSlice('\n')
	if err != nil || c.request.parse(line[:len(line)-1]) != nil || string(c.request.cmd) != "initack" {
		return 0, false
	}
	id, ok := c.request.number("pmiid")
	if !ok {
		return 0, false
	}
	rank, ok := admit(peer, id)
	if !ok {
		return 0, false
	}
	peer.SetReadDeadline(time.Time{})
	_, err = io.WriteString(peer, "cmd=initack rc=0\ncmd=set size="+strconv.Itoa(s.config.Size)+
		"\ncmd=set rank="+strconv.Itoa(rank)+"\ncmd=set debug=0\n")
	return rank, err == nil
}
