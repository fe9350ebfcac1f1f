package sshclient

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestLineThatHasEnded checks that nothing can be written after a read has found the end of a connection. The kernel
// might accept one more write.
func TestLineThatHasEnded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l := newConn(conn)
	if _, err := l.Write([]byte("x")); err != nil {
		t.Errorf("while it lives: %v", err)
	}
	if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	if n, err := l.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	if n, err := l.Write([]byte("x")); n != 0 || !errors.Is(err, errEnded) {
		t.Errorf("wrote %d bytes, %v; want %v", n, err, errEnded)
	}
}
