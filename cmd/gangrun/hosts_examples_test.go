package main_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestHostsExamples runs the examples as users have them, preflight and trial
// included, on four hosts none of which has a key or knows another.
func TestHostsExamples(t *testing.T) {
	t.Parallel()
	needPython(t, "numpy, torch, mpi4py")
	bed := testhosts.Up(t, farHosts)
	for _, h := range bed.Hosts() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		found, err := h.Exec(ctx, "sh", "-c", `echo $SSH_AUTH_SOCK; grep -rl "PRIVATE KEY" ~ || true`)
		cancel()
		if err != nil || strings.TrimSpace(found) != "" {
			t.Fatalf("%s has keys: %q, %v", h.Name(), found, err)
		}
	}
	if err := os.CopyFS(filepath.Join(bed.Shared(), "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	ring := map[job.MPI]string{}
	for _, flavour := range mpiFlavours {
		ring[flavour] = filepath.Join(bed.Shared(), "ring."+string(flavour))
		data, err := os.ReadFile(mpiProgram(t, "../../examples/ring/ring.c", flavour))
		if err != nil {
			t.Fatal(err)
		}
		writeProgram(t, ring[flavour], data)
	}
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	const four, eight = "h1:1,h2:1,h3:1,h4:1", "h1:2,h2:2,h3:2,h4:2"
	rings := []string{"on h1, 2 here", "on h4, 2 here", "went round 8 ranks 50 times"}
	for _, test := range []struct {
		name  string
		args  []string
		wants []string // in what the ranks print
	}{
		{"digits, none", []string{"--hosts", four, "examples/digits/job.yaml", "--", python, "examples/digits/train.py", "--epochs=2"}, []string{"rank 3 weights sha256 "}},
		{"digits, openmpi", []string{"--hosts", four, "examples/digits-mpi/job.yaml", "--", python, "examples/digits-mpi/train.py", "--epochs=2"}, []string{"rank 3 weights sha256 "}},
		{"ring, openmpi", []string{"--hosts", eight, "-n", "8", "--mpi", "openmpi", "--", ring[job.MPIOpenMPI], "50", "4096"}, rings},
		{"ring, mpich", []string{"--hosts", eight, "-n", "8", "--mpi", "mpich", "--", ring[job.MPIMPICH], "50", "4096"}, rings},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &farRun{t: t, bed: bed, gangrun: gangrun}
			r.control(append([]string{"run", "--output", "none", "--retries", "0"}, test.args...)...)
			if code := r.finish(); code != 0 {
				t.Fatalf("exit code %d; gangrun said:\n%s", code, r.errs.String())
			}
			r.nothingLeft()
			attempt := r.report().Last()
			var said bytes.Buffer
			for rank := range attempt.Placement {
				said.Write(r.log(rank, "out"))
			}
			for _, want := range test.wants {
				if !strings.Contains(said.String(), want) {
					t.Errorf("nobody said %q:\n%s", want, said.String())
				}
			}
			hosts := map[string]bool{}
			for _, p := range attempt.Placement {
				hosts[p.Host] = true
			}
			if len(hosts) != farHosts {
				t.Errorf("the ranks were on %v, want all of %d hosts", hosts, farHosts)
			}
		})
	}
}
