package openmpi_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

func TestMpirunPlacesRanks(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, "hello")
	if out, err := exec.Command("mpicc.openmpi", "-o", program, "testdata/hello.c").CombinedOutput(); err != nil {
		t.Fatalf("cannot build hello.c: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	installation, ok := openmpi.Find("", os.Environ())
	if !ok || installation.Daemon == "" {
		t.Fatalf("Find: %+v, %v: install openmpi-bin", installation, ok)
	}
	nodes := []string{"localhost", "198.18.0.2", "198.18.0.3", "198.18.0.4"}
	tests := []struct {
		name    string
		node    []int
		apps    []int
		userEnv []string
	}{
		{"one rank", []int{0}, nil, nil},
		{"one node", []int{0, 0, 0}, nil, nil},
		{"two nodes", []int{0, 0, 1, 1}, nil, nil},
		{"uneven", []int{0, 0, 0, 1}, nil, nil},
		{"uneven the other way", []int{0, 1, 1, 1}, nil, nil},
		{"alternating", []int{0, 1, 0, 1}, nil, nil},
		{"backwards", []int{1, 1, 0}, nil, nil},
		{"none here", []int{1, 1}, nil, nil},
		{"four nodes", []int{0, 1, 2, 3}, nil, nil},
		{"four nodes, mixed", []int{2, 0, 3, 1, 0, 2}, nil, nil},
		{"two programs", []int{0, 0, 1, 1}, []int{1, 3}, nil},
		{"three programs, mixed", []int{1, 0, 0, 1, 1, 0}, []int{2, 1, 3}, nil},
		{"against the user's mapping", []int{0, 0, 1, 1}, nil,
			[]string{"OMPI_MCA_rmaps_base_mapping_policy=node", "OMPI_MCA_rmaps=seq", "OMPI_MCA_plm=slurm", "OMPI_MCA_orte_default_hostfile=/absent"}},
		{"in a batch job", []int{0, 1}, nil,
			[]string{"SLURM_JOB_ID=1", "SLURM_JOBID=1", "SLURM_NODELIST=absent", "SLURM_JOB_NODELIST=absent", "SLURM_TASKS_PER_NODE=1", "SLURM_NNODES=1",
				"PBS_JOBID=1", "PBS_ENVIRONMENT=PBS_BATCH", "LSB_JOBID=1", "SGE_ROOT=/absent", "ARC=x", "PE_HOSTFILE=/absent", "JOB_ID=1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "gr") // a short path, because session directories have sockets
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			used := nodes[:slices.Max(test.node)+1]
			for _, node := range used {
				for _, sub := range []string{"tmp", "shm"} {
					if err := os.MkdirAll(filepath.Join(dir, node, sub), 0o700); err != nil {
						t.Fatal(err)
					}
				}
			}
			plan := openmpi.Plan{
				Nodes: used, Node: test.node, Apps: test.apps, Cores: 2, Interface: "lo",
				Agent:  []string{self, "test-agent", dir},
				Shim:   []string{self, "test-shim", dir, program},
				Tmpdir: filepath.Join(dir, used[0], "tmp"), Shm: filepath.Join(dir, used[0], "shm"),
			}
			base := override(os.Environ(), test.userEnv...)
			argv, env := plan.Command(installation, base)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, installation.Mpirun, argv[1:]...)
			cmd.Args = argv
			cmd.Env = override(override(base, openmpi.DaemonEnv(used[0], plan.Tmpdir, plan.Shm)...), env...)
			cmd.WaitDelay = time.Minute
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%q: %v\n%s", argv, err, &stderr)
			}
			got := strings.Split(strings.TrimSpace(string(out)), "\n")
			want := expected(test.node, test.apps)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%q says\n%s\nwant\n%s", argv, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// expected returns what hello prints if everything is right.
func expected(node, apps []int) []string {
	if apps == nil {
		apps = []int{len(node)}
	}
	var app []int
	for number, ranks := range apps {
		for range ranks {
			app = append(app, number)
		}
	}
	ranksOf := map[int]int{}
	for _, n := range node {
		ranksOf[n]++
	}
	local := map[int]int{}
	var lines []string
	for rank, n := range node {
		lines = append(lines, fmt.Sprintf("rank %d of %d local %d of %d app %d sum %d",
			rank, len(node), local[n], ranksOf[n], app[rank], len(node)*(len(node)-1)/2))
		local[n]++
	}
	return lines
}
