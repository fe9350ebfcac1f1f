package peer

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
)

func TestFindSocket(t *testing.T) {
	client, server := agenttest.Connected(t)
	found, err := findSocket(client.LocalAddr().(*net.TCPAddr), client.RemoteAddr().(*net.TCPAddr))
	if err != nil || int(found.uid) != os.Getuid() {
		t.Fatalf("%+v, %v, want a socket of user %d", found, err, os.Getuid())
	}
	other, err := findSocket(server.LocalAddr().(*net.TCPAddr), server.RemoteAddr().(*net.TCPAddr))
	if err != nil || other == found {
		t.Errorf("%+v, %v for the other end, want another socket than %+v", other, err, found)
	}
	if _, err := findSocket(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, client.RemoteAddr().(*net.TCPAddr)); err == nil {
		t.Error("found a socket that is not there")
	}
	if _, err := findSocket(&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, &net.TCPAddr{IP: net.IPv6loopback, Port: 2}); err == nil {
		t.Error("found a socket of IPv6")
	}
}

// TestOwnPeer checks that this process does not count as its own descendant, and that the processes that it starts do.
func TestOwnPeer(t *testing.T) {
	client, server := agenttest.Connected(t)
	if IsDescendant(server, 0) {
		t.Error("this process counts as below itself")
	}
	file, err := client.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{file}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	for _, likely := range []int{0, child.Process.Pid, os.Getpid()} {
		if !IsDescendant(server, likely) {
			t.Errorf("a child's connection does not count as a descendant's (likely %d)", likely)
		}
	}
}
