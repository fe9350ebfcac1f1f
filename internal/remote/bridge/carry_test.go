package bridge

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns both ends of a connection to an agent.
func pair(t *testing.T) (bridge, agent *net.UnixConn) {
	t.Helper()
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if bridge, err = dial(dir); err != nil {
		t.Fatal(err)
	}
	if agent, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bridge.Close(); agent.Close() })
	return bridge, agent
}

// session returns both ends of the two pipes of an SSH session.
func session(t *testing.T) (in, inWrite, outRead, out *os.File) {
	t.Helper()
	in, inWrite, err := os.Pipe()
	if err == nil {
		outRead, out, err = os.Pipe()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{in, inWrite, outRead, out} {
			f.Close()
		}
	})
	return in, inWrite, outRead, out
}

// carrying calls carry in a goroutine. The channel gets its result.
func carrying(conn *net.UnixConn, in io.Reader, out io.Writer) <-chan bool {
	asked := make(chan bool, 1)
	go func() { asked <- carry(conn, in, out) }()
	return asked
}

// soon returns the result of carry, which must come within two minutes.
func soon(t *testing.T, asked <-chan bool) bool {
	t.Helper()
	select {
	case a := <-asked:
		return a
	case <-time.After(2 * time.Minute):
		t.Fatal("it goes on carrying")
		return false
	}
}

// TestCarryToTheEnd checks that the last data of an agent arrives completely, and that the end of the agent ends the
// bridge.
func TestCarryToTheEnd(t *testing.T) {
	conn, agent := pair(t)
	in, inWrite, outRead, out := session(t)
	asked := carrying(conn, in, out)
	if _, err := io.WriteString(inWrite, "who is there"); err != nil {
		t.Fatal(err)
	}
	question := make([]byte, len("who is there"))
	if _, err := io.ReadFull(agent, question); err != nil || string(question) != "who is there" {
		t.Fatalf("the agent was asked %q: %v", question, err)
	}
	said := make([]byte, 1<<20)
	rand.Read(said)                                  // cannot fail
	go func() { agent.Write(said); agent.Close() }() // ends when the data was read
	heard := make([]byte, len(said))
	if _, err := io.ReadFull(outRead, heard); err != nil || !bytes.Equal(heard, said) {
		t.Errorf("what the agent said last did not arrive whole: %v", err)
	}
	if !soon(t, asked) {
		t.Error("it says that nobody asked")
	}
}

// TestCarryWithoutController checks that the bridge ends when the controller closes its side. carry must report
// whether the controller has sent anything.
func TestCarryWithoutController(t *testing.T) {
	for _, word := range []string{"", "hello"} {
		conn, agent := pair(t)
		in, inWrite, _, out := session(t)
		asked := carrying(conn, in, out)
		if _, err := io.WriteString(inWrite, word); err != nil {
			t.Fatal(err)
		}
		inWrite.Close()
		if got := soon(t, asked); got != (word != "") {
			t.Errorf("it says that the controller has said something: %t, of %q", got, word)
		}
		if heard, err := io.ReadAll(agent); err != nil || string(heard) != word {
			t.Errorf("the agent heard %q, %v; want %q", heard, err, word)
		}
	}
}

// TestCarryOnALineThatIsCut checks that the end of the agent ends the bridge even if nothing reads the output of the
// bridge.
func TestCarryOnALineThatIsCut(t *testing.T) {
	conn, agent := pair(t)
	in, _, _, out := session(t)
	asked := carrying(conn, in, out)
	// The agent sends more than the pipe, and the goroutine that copies to it, can hold.
	for begun, sent := time.Now(), 0; sent < 128<<10; {
		if err := agent.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := agent.Write(make([]byte, 8<<20))
		if err == nil {
			t.Fatal("somebody takes 8 MiB that nobody reads")
		}
		if sent += n; time.Since(begun) > time.Minute {
			t.Fatalf("only %d bytes are taken: %v", sent, err)
		}
	}
	select {
	case <-asked:
		t.Fatal("it does not wait for the agent")
	default:
	}
	agent.Close()
	soon(t, asked)
	out.Close()
}
