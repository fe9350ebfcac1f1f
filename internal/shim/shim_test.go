package shim

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(Variable) != "" { // TestOrderSizes has started this process
		os.Exit(Main())
	}
	goleak.VerifyTestMain(m)
}

// TestOrderSizes gives shims orders that fill the buffer of a JSON decoder exactly, and orders that are one byte
// shorter or longer. The rank of each must run until its standard input ends.
func TestOrderSizes(t *testing.T) {
	for _, buffer := range []int{512, 1536, 3584} { // encoding/json reads 512 bytes, and then grows its buffer
		for size := buffer - 1; size <= buffer+1; size++ {
			t.Run(fmt.Sprint(size), func(t *testing.T) { runShim(t, size) })
		}
	}
}

// runShim runs a shim with an order of size bytes, without the newline at its end.
func runShim(t *testing.T, size int) {
	address := filepath.Join(t.TempDir(), "agent")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	process := exec.Command("/proc/self/exe")
	process.Env = append(os.Environ(), Variable+"="+address, "PMIX_RANK=2")
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = process.Process.Kill() // the process may have ended
		_ = process.Wait()
	}()
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	words := json.NewDecoder(conn)
	var hello Greeting
	if err := words.Decode(&hello); err != nil || !hello.Shim || hello.Rank != 2 {
		t.Fatalf("greeting %+v, %v", hello, err)
	}
	feed, printed := sendStreams(t, conn)
	if _, err := conn.Write(append(orderOf(t, size), '\n')); err != nil {
		t.Fatal(err)
	}
	var word Word
	if err := words.Decode(&word); err != nil || word.PID == 0 {
		t.Fatalf("start: %+v, %v", word, err)
	}
	said := make([]byte, 16)
	if n, err := printed.Read(said); string(said[:n]) != "running\n" {
		t.Errorf("the rank printed %q, %v", said[:n], err)
	}
	_ = feed.Close()
	word = Word{}
	if err := words.Decode(&word); err != nil || !word.Ended || unix.WaitStatus(word.Status).ExitStatus() != 7 {
		t.Errorf("end: %+v, %v, want exit code 7", word, err)
	}
}

// sendStreams sends the descriptors of a rank to its shim. It returns the other ends of the rank's standard input and
// output.
func sendStreams(t *testing.T, conn *net.UnixConn) (feed, printed *os.File) {
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	t.Cleanup(func() { _ = feed.Close() })
	printed, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Cleanup(func() { _ = printed.Close() })
	fds := unix.UnixRights(int(in.Fd()), int(out.Fd()), int(os.Stderr.Fd()), int(os.Stderr.Fd()))
	if _, _, err := conn.WriteMsgUnix([]byte{'\n'}, fds, nil); err != nil {
		t.Fatal(err)
	}
	return feed, printed
}

// orderOf returns an order of size bytes. Its rank prints a line, waits for the end of its standard input, and exits
// with code 7.
func orderOf(t *testing.T, size int) []byte {
	order := Order{Path: []byte("/bin/sh"), Argv: [][]byte{[]byte("sh"), []byte("-c"), []byte("echo running; read -r line; exit 7")}, Workdir: []byte("/")}
	for range 4 { // each empty argument adds 3 bytes, and 3 bytes of the variable add 4
		order.Argv = append(order.Argv, []byte{})
		for n := range size {
			order.Env = [][]byte{[]byte("PADDING=" + strings.Repeat("x", n))}
			data, err := json.Marshal(order)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) == size {
				return data
			}
		}
	}
	t.Fatalf("no order has %d bytes", size)
	return nil
}
