package pulse

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// busy starts a process that is bound to one CPU and runs a script until the test ends.
func busy(t *testing.T, script string) int {
	t.Helper()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	if err := unix.SchedSetaffinity(cmd.Process.Pid, &one); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// TestWaitsForCPU checks that two processes that share a CPU wait for it as long as they run.
func TestWaitsForCPU(t *testing.T) {
	pids := []int{busy(t, `while :; do :; done`), busy(t, `while :; do :; done`)}
	var s Sampler
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		table := s.Round(pids, false)
		var enough int
		for rank, pid := range pids {
			p, ok := s.Sample(table, rank, pid)
			if !ok || p.Delays.Cores > 1 && time.Now().After(deadline) {
				t.Fatalf("%+v, %v", p, ok)
			}
			if d := p.Delays; d.Ran > 50e6 && d.Waited > 50e6 && d.Cores == 1 && !d.File {
				enough++
			}
		}
		if enough == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("they do not wait for each other")
		}
	}
}

// TestRoundsFindNewProcesses checks that a Sampler also reads the known processes of ranks in rounds in which it does
// not read all processes of the host. The next full round must find new processes.
func TestRoundsFindNewProcesses(t *testing.T) {
	pid := busy(t, `read -r line; sleep 1000 & sleep 1000 & wait`) // read returns at once, because there is no input
	var s Sampler
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p, ok := s.Sample(s.Round([]int{pid}, false), 0, pid)
		if !ok {
			t.Fatal("it is not found")
		}
		if p.Processes == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes, want 3", p.Processes)
		}
	}
	if p, ok := s.Sample(s.Round([]int{pid, os.Getpid()}, false), 1, os.Getpid()); !ok || p.Processes < 2 {
		t.Errorf("a new rank is %+v, %v", p, ok)
	}
}

func TestWaitsForFile(t *testing.T) {
	for state, want := range map[byte]bool{'D': true, 'R': false, 'S': false, 'T': false, 'Z': false} {
		if got := waitsForFile(procfs.Stat{PID: os.Getpid(), State: state}); got != want {
			t.Errorf("state %c: %v", state, got)
		}
	}
}

func TestMemoryStall(t *testing.T) {
	if _, err := os.Stat("/proc/pressure/memory"); err == nil && MemoryStall() > job.Duration(1000*time.Hour) || MemoryStall() < 0 {
		t.Errorf("%s", MemoryStall())
	}
}

// inode returns the inode of the socket of a connection.
func inode(t *testing.T, c net.Conn) uint32 {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var link string
	if err := raw.Control(func(fd uintptr) { link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd))) }); err != nil || link == "" {
		t.Fatal(link, err)
	}
	n, err := strconv.ParseUint(link[len("socket:["):len(link)-1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// TestConnections checks how much this process has sent over a connection, as the kernel reports it.
func TestConnections(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			a, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			all := func(_, to netip.Addr) bool { return to.IsLoopback() }
			id := inode(t, a)
			if c, ok := connections(all).connections[id]; !ok || c.acked > 1 {
				t.Fatalf("at first %+v, %v", c, ok)
			}
			var rank traffic
			tree := []procfs.Stat{{PID: os.Getpid()}}
			rank.look(connections(all), tree)
			const size = 1000
			if _, err := a.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if c := connections(all).connections[id]; c.acked >= size {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("nothing was sent")
				}
			}
			rank.look(connections(all), tree)
			var d job.Delays
			rank.set(&d)
			if d.Rate <= 0 || d.RTT <= 0 || d.RTT > job.Duration(time.Minute) || d.Sending < 0 {
				t.Errorf("%+v, want a rate and a round-trip time", d)
			}
			if _, ok := Connections().connections[id]; ok {
				t.Error("the host is connected to itself, and that counts")
			}
		})
	}
}

func FuzzConnections(f *testing.F) {
	message := make([]byte, messageSize+4+busyAt+8)
	message[0], message[messageSize], message[messageSize+2] = unix.AF_INET, byte(4+busyAt+8), diagInfo
	f.Add(message)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := Network{map[uint32]connection{}}
		n.add(data, func(netip.Addr, netip.Addr) bool { return true })
		if len(n.connections) > 1 {
			t.Errorf("%d connections in one message", len(n.connections))
		}
	})
}
