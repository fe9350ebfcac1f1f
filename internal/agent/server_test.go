package agent

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
)

// TestListener checks that the listener returns one connection, and then ends with it.
func TestListener(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	l := newListener(here)
	if l.Addr() != here.LocalAddr() {
		t.Errorf("its address is %v, want the connection's", l.Addr())
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("a second connection was given, or refused (%v), while the first lives", err)
	default:
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end: got %v, want that it is closed", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if _, err := there.Write([]byte("x")); err == nil {
		t.Error("the connection is still open")
	}
}

func TestListenerThatIsClosedFirst(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	l := newListener(here)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestCleanTmpdir checks that the TMPDIR of a simulated host is removed, and no other directory.
func TestCleanTmpdir(t *testing.T) {
	t.Chdir(t.TempDir()) // the current directory must not matter
	ours, other := "gangrun-h1", "precious"
	agenttest.WriteFile(t, ours+"/a/b", "x", 0o644)
	agenttest.WriteFile(t, other+"/c", "x", 0o644)
	s := newServer(nil, nil, &link{})
	if err := s.settings.cleanTmpdir(); err != nil {
		t.Errorf("without one: %v", err)
	}
	s.settings.tmpdir = ours
	if err := s.settings.cleanTmpdir(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ours); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	s.settings.tmpdir = other
	if err := s.settings.cleanTmpdir(); err == nil {
		t.Error("a directory that is not gangrun's was removed")
	}
	if _, err := os.Stat(other + "/c"); err != nil {
		t.Error(err)
	}
}
