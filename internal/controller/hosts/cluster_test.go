package hosts

import (
	"encoding/gob"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// toCluster is what a fake kubectl sends: its arguments, and then the input of the command.
type toCluster struct {
	Args []string
	In   []byte
	End  bool // the input has ended
}

// fromCluster is what a fake kubectl receives: the output of the command, and then the exit code.
type fromCluster struct {
	Out, Err []byte
	End      bool
	Code     int
}

// fakeKubectl acts as kubectl exec for the pods of a cluster. The socket of the cluster is beside the program. Like
// the real kubectl, it only passes on data, so the command survives it.
func fakeKubectl(args []string) int {
	conn, err := net.Dial("unix", filepath.Join(filepath.Dir(args[0]), "cluster"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "The connection to the server was refused:", err)
		return 1
	}
	to := gob.NewEncoder(conn)
	if err := to.Encode(toCluster{Args: args[1:]}); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	go func() { // ends with the process
		buffer := make([]byte, 32<<10)
		for {
			n, err := os.Stdin.Read(buffer)
			if n > 0 && to.Encode(toCluster{In: buffer[:n]}) != nil {
				return
			}
			if err != nil {
				_ = to.Encode(toCluster{End: true})
				return
			}
		}
	}()
	for from := gob.NewDecoder(conn); ; {
		var got fromCluster
		if err := from.Decode(&got); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return 1
		}
		_, _ = os.Stdout.Write(got.Out)
		_, _ = os.Stderr.Write(got.Err)
		if got.End {
			if got.Code != 0 {
				fmt.Fprintln(os.Stderr, "command terminated with exit code", got.Code)
			}
			return got.Code
		}
	}
}

// cluster has pods that all run on this machine.
type cluster struct {
	dir      string // the directory of kubectl, of the socket, and of the programs installed in the pods
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	opened sync.Cond
	cut    bool
	closed bool
	conns  []net.Conn
}

func newCluster(t *testing.T, dir string) *cluster {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir: dir}
	c.opened.L = &c.mu
	if err := os.Symlink(self, c.kubectl()); err != nil {
		t.Fatal(err)
	}
	if c.listener, err = net.Listen("unix", filepath.Join(dir, "cluster")); err != nil {
		t.Fatal(err)
	}
	c.work.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

func (c *cluster) kubectl() string { return filepath.Join(c.dir, "kubectl") }

func (c *cluster) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		if c.closed {
			conn.Close()
		}
		c.mu.Unlock()
		c.work.Go(func() { c.exec(conn) })
	}
}

// pass waits while the test keeps connections silent.
func (c *cluster) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cut && !c.closed {
		c.opened.Wait()
	}
}

func (c *cluster) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	c.opened.Broadcast()
}

func (c *cluster) close() {
	c.listener.Close()
	c.mu.Lock()
	c.closed = true
	c.opened.Broadcast()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// exec runs the command of a kubectl. When the connection ends, the command first gets the data that was sent before,
// and then has neither input nor output.
func (c *cluster) exec(conn net.Conn) {
	defer conn.Close()
	from, to := gob.NewDecoder(conn), gob.NewEncoder(conn)
	var first toCluster
	if from.Decode(&first) != nil {
		return
	}
	c.pass()
	a := first.Args
	if len(a) != 7 || !slices.Equal(a[:2], []string{"exec", "-i"}) || !slices.Equal(a[3:6], []string{"--", "sh", "-c"}) {
		_ = to.Encode(fromCluster{Err: fmt.Appendf(nil, "error: unknown words %q\n", a), End: true, Code: 1})
		return
	}
	cmd := exec.Command(a[4], a[5:]...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(c.dir, "cache"), "POD="+a[2])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	stderr, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		_ = to.Encode(fromCluster{Err: fmt.Appendf(nil, "error: %v\n", err), End: true, Code: 1})
		return
	}
	c.work.Go(func() {
		defer stderr.Close()
		defer stdout.Close()
		defer stdin.Close()
		for {
			var got toCluster
			err := from.Decode(&got)
			c.pass()
			if err != nil {
				return
			}
			_, _ = stdin.Write(got.In)
			if got.End {
				stdin.Close()
			}
		}
	})
	var sending sync.Mutex
	send := func(f fromCluster) {
		c.pass()
		sending.Lock()
		defer sending.Unlock()
		_ = to.Encode(f)
	}
	var outputs sync.WaitGroup
	outputs.Go(func() { copyTo(stdout, func(b []byte) { send(fromCluster{Out: b}) }) })
	outputs.Go(func() { copyTo(stderr, func(b []byte) { send(fromCluster{Err: b}) }) })
	outputs.Wait()
	_ = cmd.Wait()
	send(fromCluster{End: true, Code: cmd.ProcessState.ExitCode()})
}

func copyTo(from io.Reader, take func([]byte)) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			take(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}
