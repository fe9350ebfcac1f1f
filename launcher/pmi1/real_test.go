package pmi1

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
)

// program prints its rank, the number of ranks on its node, and a sum over all ranks.
const program = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
	int rank, size, near, one, sum, *app, *universe, flag;
	MPI_Comm node;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &near);
	one = rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &flag);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
	printf("rank %d of %d near %d sum %d app %d universe %d\n", rank, size, near, sum, *app, *universe);
	MPI_Comm_free(&node);
	MPI_Finalize();
	return 0;
}
`

// compile compiles program and returns the path of the result.
func compile(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("mpicc.mpich")
	if err != nil {
		noskip.Skip(t, "MPICH's mpicc.mpich is not installed")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "who.c"), filepath.Join(dir, "who")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// gang has four ranks on simulated hosts.
type gang struct {
	servers []*Server // by host
	host    []int     // the host of each rank
	started []*exec.Cmd
	output  []*bytes.Buffer
	changed chan struct{} // gets a value when a state has changed
}

// newGang returns the servers of a gang. A Hub connects them.
func newGang(t *testing.T, hosts int) *gang {
	const size = 4
	g := &gang{changed: make(chan struct{}, 1)}
	ranks := make([][]int, hosts)
	for rank := range size {
		host := rank * hosts / size
		g.host = append(g.host, host)
		ranks[host] = append(ranks[host], rank)
	}
	var mu sync.Mutex
	hub := NewHub(ranks)
	for host := range hosts {
		server := NewServer(Config{
			Name: "kvs_1", Size: size, Universe: 8, Ranks: ranks[host], Mapping: Mapping(g.host),
			Appnum: func(rank int) int { return rank / 3 },
			Changed: func(int) {
				select {
				case g.changed <- struct{}{}:
				default:
				}
			},
			Enter: func(group string, puts []Pair) {
				if hosts == 1 {
					t.Errorf("the only host told of barrier %q", group)
				}
				mu.Lock()
				all, done := hub.Enter(host, group, puts)
				mu.Unlock()
				if done {
					for _, s := range g.servers {
						s.Release(group, all)
					}
				}
			},
		})
		g.servers = append(g.servers, server)
	}
	t.Cleanup(g.close)
	return g
}

func (g *gang) close() {
	for _, s := range g.servers {
		s.Close()
	}
}

// start starts a rank.
func (g *gang) start(t *testing.T, ctx context.Context, rank int, files []*os.File, env []string, argv ...string) {
	t.Helper()
	out := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.started = append(g.started, cmd)
	g.output = append(g.output, out)
}

// socketpair returns the end of the server and the end of the rank.
func socketpair(t *testing.T) (net.Conn, *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	return conn, theirs
}

// viaFD starts every rank with PMI_FD.
func (g *gang) viaFD(t *testing.T, ctx context.Context, argv ...string) {
	for rank, host := range g.host {
		ours, theirs := socketpair(t)
		g.start(t, ctx, rank, []*os.File{theirs},
			[]string{"PMI_FD=3", fmt.Sprint("PMI_RANK=", rank), fmt.Sprint("PMI_SIZE=", len(g.host))}, argv...)
		theirs.Close()
		served := make(chan struct{})
		go func() {
			defer close(served)
			g.servers[host].Serve(rank, ours)
		}()
		t.Cleanup(func() {
			g.close()
			<-served
		})
	}
}

// viaPort starts every rank with PMI_PORT.
func (g *gang) viaPort(t *testing.T, ctx context.Context, argv ...string) {
	var address []string
	for _, s := range g.servers {
		a, err := s.Listen(func(_ *net.TCPConn, id int) (int, bool) { return id - 100, true })
		if err != nil {
			t.Fatal(err)
		}
		address = append(address, a)
	}
	for rank, host := range g.host {
		g.start(t, ctx, rank, nil, []string{"PMI_PORT=" + address[host], fmt.Sprint("PMI_ID=", 100+rank)}, argv...)
	}
}

func TestMPICH(t *testing.T) {
	binary := compile(t)
	for _, hosts := range []int{1, 2} {
		for _, way := range []struct {
			name  string
			times int
			start func(*gang, *testing.T, context.Context, ...string)
			argv  []string
		}{
			{"fd", 1, (*gang).viaFD, []string{binary}},
			{"port", 1, (*gang).viaPort, []string{binary}},
			{"port twice", 2, (*gang).viaPort, []string{"sh", "-c", `"$0" && "$0"`, binary}},
		} {
			t.Run(fmt.Sprint(way.name, " on ", hosts), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				g := newGang(t, hosts)
				way.start(g, t, ctx, way.argv...)
				for rank, cmd := range g.started {
					if err := cmd.Wait(); err != nil {
						t.Errorf("rank %d: %v", rank, err)
					}
					line := fmt.Sprintf("rank %d of 4 near %d sum 10 app %d universe 8\n", rank, 4/hosts, rank/3)
					if got := g.output[rank].String(); got != strings.Repeat(line, way.times) {
						t.Errorf("rank %d said %q, want %d times %q", rank, got, way.times, line)
					}
					if state := g.servers[g.host[rank]].State(rank); state.Joined != job.JoinedFinalized || state.Waiting {
						t.Errorf("rank %d is %+v, want it finalized", rank, state)
					}
				}
			})
		}
	}
}

// TestMPICHAborts does not wait until the rank that aborts ends by itself, because that may take a while.
func TestMPICHAborts(t *testing.T) {
	binary := compile(t)
	for _, code := range []int{7, 256, -3} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		g := newGang(t, 2)
		g.viaFD(t, ctx, binary, fmt.Sprint(code))
		for !g.servers[0].State(1).Aborted && ctx.Err() == nil {
			select {
			case <-g.changed:
			case <-ctx.Done():
			}
		}
		if state := g.servers[0].State(1); !state.Aborted || state.Code != code {
			t.Errorf("after MPI_Abort(%d) rank 1 is %+v", code, state)
		}
		cancel()
		for _, cmd := range g.started {
			cmd.Wait()
		}
	}
}
