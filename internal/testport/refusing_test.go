package testport

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

func TestRefusing(t *testing.T) {
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(Refusing(t)))
	if _, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to it: %v", err)
	}
	if _, err := net.Listen("tcp", at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening on it: %v", err)
	}
}
