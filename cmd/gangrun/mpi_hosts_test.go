package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// said returns what a rank has printed in an attempt.
func said(t *testing.T, attempt *runreport.Attempt, rank int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(attempt.Logs, job.LogName(rank, "out")))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// mpiWorld starts a gang and checks what its ranks see of the gang.
func mpiWorld(t *testing.T, flavour job.MPI, ranks, hosts int, mode string) {
	r := startMPI(t, flavour, ranks, hosts, []string{mode})
	code := r.finish()
	r.gone()
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	attempt := r.report().Last()
	where := make([]string, ranks)
	names := map[string]bool{}
	for _, p := range attempt.Placement {
		where[p.Rank], names[p.Host] = p.Host, true
	}
	if len(names) != min(hosts, ranks) {
		t.Errorf("the ranks are on %d hosts, want %d: %q", len(names), min(hosts, ranks), where)
	}
	for rank := range ranks {
		want := fmt.Sprintf("rank %d of %d", rank, ranks)
		switch mode {
		case "allreduce":
			want += fmt.Sprintf(": sum %d", ranks*(ranks+1)/2)
		case "splithost":
			want += ": host of"
			for other := range ranks {
				if where[other] == where[rank] {
					want += " " + strconv.Itoa(other)
				}
			}
		}
		if got := said(t, attempt, rank); got != want+"\n" {
			t.Errorf("rank %d said %q, want %q", rank, got, want)
		}
	}
}

// mpiHosts runs gangs of these sizes on one, two and four simulated hosts. If slice is true, it tries only a part of
// the combinations: each pair of size and number of hosts, of mode and size, and of mode and number of hosts occurs at
// least once with each MPI library.
func mpiHosts(t *testing.T, slice bool, sizes ...int) {
	sharesNothing(t)
	for _, flavour := range mpiFlavours {
		failProgram(t, flavour)
		for i, ranks := range sizes {
			for j, hosts := range []int{1, 2, 4} {
				for k, mode := range []string{"hello", "allreduce", "splithost", "names"} {
					if slice && (i+j+k)%len(sizes) != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%d/%s", flavour, ranks, hosts, mode), func(t *testing.T) {
						if ranks <= 8 { // more ranks use all cores while they wait for each other
							t.Parallel()
						}
						mpiWorld(t, flavour, ranks, hosts, mode)
					})
				}
			}
		}
	}
}

// TestMPIHosts checks that the ranks of a gang see one world of the right size and can compute together. They must
// share memory only with ranks of their own host.
func TestMPIHosts(t *testing.T) { mpiHosts(t, true, 2, 5, 16) }

// TestMPIRing runs the example ring on two simulated hosts. gangrun must find out which MPI library it uses.
func TestMPIRing(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	for _, flavour := range mpiFlavours {
		program := mpiProgram(t, "../../examples/ring/ring.c", flavour)
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			r := newBench(t).start(nil, "--preflight", "off", "--retries", "0", "--loopback", "2", "-n", "4", "--", program, "20", "100000")
			code := r.finish()
			r.gone()
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
			attempt := r.report().Last()
			if attempt.Step != 20 || attempt.Total != 20 {
				t.Errorf("gangrun has seen step %d of %d, want 20 of 20", attempt.Step, attempt.Total)
			}
			for rank := range 4 {
				first, _, _ := strings.Cut(said(t, attempt, rank), "\n")
				if words := strings.Fields(first); len(words) != 8 || !slices.Equal(words[:4], []string{"rank", strconv.Itoa(rank), "of", "4"}) || words[6] != "2" {
					t.Errorf("rank %d said %q, want rank %d of 4 on its host, 2 here", rank, first, rank)
				}
			}
		})
	}
}

// TestMPILateRank checks that gangrun does not end Open MPI's daemon on a host whose ranks have ended while a rank still
// runs on another host. If daemons do not end after the last rank, gangrun must end them.
func TestMPILateRank(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	ring := mpiProgram(t, "../../examples/ring/ring.c", job.MPIOpenMPI)
	const script = `"$0" 2 100; sleep 300 & [ "$RANK" != "$LATE" ] || { touch late; until [ -e go ]; do sleep 0.1; done; sleep 4; }`
	for _, stopped := range []string{"", "mpirun", "orted"} {
		for late := range 2 {
			t.Run(fmt.Sprintf("%d%s", late, stopped), func(t *testing.T) {
				t.Parallel()
				r := newBench(t).start(nil, "--mpi", "openmpi", "--preflight", "off", "--retries", "0", "--loopback", "2", "-n", "2", "-e", "LATE="+strconv.Itoa(late),
					"--", "sh", "-c", script, ring)
				r.await("the late rank", func() bool {
					_, err := os.Stat(filepath.Join(r.dir, "late"))
					return err == nil
				})
				hit := 0
				for pid, line := range r.marked()[ownMark] {
					if name, _, _ := strings.Cut(line, " "); filepath.Base(name) == stopped && r.strike(pid, unix.SIGSTOP) {
						hit++
					}
				}
				if stopped != "" && hit != 1 {
					t.Errorf("%d of %s stopped", hit, stopped)
				}
				if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				code := r.finish()
				r.gone()
				if code != 0 {
					t.Errorf("exit code %d", code)
				}
			})
		}
	}
}

// TestMPIFinalizeTCP checks that ranks of MPICH end if they communicate over TCP. Without gangrun's help, MPI_Finalize
// hangs in about half of such runs, because ranks wait for answers of ranks that wait for them.
func TestMPIFinalizeTCP(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	program := mpiProgram(t, "../../examples/ring/ring.c", job.MPIMPICH)
	for name, command := range map[string][]string{"direct": {program}, "wrapped": {"sh", "-c", program + "; exit $?"}} {
		for i := range 6 {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				args := []string{"--mpi", "mpich", "--preflight", "off", "--retries", "0", "--loopback", strconv.Itoa(1 + i%2), "-n", "4",
					"-e", "UCX_TLS=tcp,self", "-e", "UCX_NET_DEVICES=lo", "--"}
				r := newBench(t).start(nil, append(args, command...)...)
				code := r.finish()
				r.gone()
				if code != 0 {
					t.Fatalf("exit code %d", code)
				}
			})
		}
	}
}

// TestMPIFinalizeShared checks the same if two ranks that wait share a connection. This happens to ranks on many hosts
// after large messages. Only the controller can see it.
func TestMPIFinalizeShared(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	program := mpiProgram(t, "../../examples/ring/ring.c", job.MPIMPICH)
	for i := range 3 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			r := newBench(t).start(nil, "--mpi", "mpich", "--preflight", "off", "--retries", "0", "--loopback", "4", "-n", "8",
				"-e", "UCX_TLS=tcp,self", "-e", "UCX_NET_DEVICES=lo", "--", program, "3", "65536")
			code := r.finish()
			r.gone()
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
		})
	}
}

// TestMPIRingUsage checks that gangrun exits with the code of a program that refuses its arguments.
func TestMPIRingUsage(t *testing.T) {
	t.Parallel()
	for _, flavour := range mpiFlavours {
		program := mpiProgram(t, "../../examples/ring/ring.c", flavour)
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			r := newBench(t).start(nil, "--preflight", "off", "--retries", "0", "-n", "2", "--", program, "none")
			if code := r.finish(); code != 2 || !strings.Contains(r.file("stderr"), "usage: ring") {
				t.Errorf("exit code %d, want 2 and how to use it", code)
			}
			r.gone()
		})
	}
}
