package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// slurmNodes are the numbers of nodes on which the launch in a Slurm job is measured. Each node has ranksEach ranks.
var slurmNodes = []int{4, 16}

// slurmScript runs this program again in a Slurm job on all hosts, and prints the output of the job. It submits the
// job as a user who must not log in to any host.
const slurmScript = `dir=$(bob pwd) && install -m 755 "$BENCH_SELF" "$dir/bench" || exit
bob sbatch --quiet --wait -N "$BENCH_NODES" --ntasks-per-node="$BENCH_EACH" -o "$dir/out" --wrap "exec ./bench ` + insideName + ` slurm gangrun $BENCH_RUNS"
code=$?
cat "$dir/out"
exit $code`

// slurm measures the launch in Slurm jobs. If the machine cannot simulate hosts, it prints that and
// skips the measurement.
func slurm(ctx context.Context, bed, gangrun string, runs int) error {
	if os.Geteuid() != 0 {
		fmt.Println("slurm: left out: only root can simulate hosts")
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, nodes := range slurmNodes {
		cmd := exec.CommandContext(ctx, bed, "-slurm", "-n", strconv.Itoa(nodes), "-c", slurmScript)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(gangrun)+":"+os.Getenv("PATH"), "BENCH_SELF="+self,
			"BENCH_NODES="+strconv.Itoa(nodes), "BENCH_EACH="+strconv.Itoa(ranksEach), "BENCH_RUNS="+strconv.Itoa(runs))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = parted
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

// inSlurm measures whole jobs in the Slurm job that it runs in, in alternating runs, and prints one
// table.
func inSlurm(ctx context.Context, gangrun string, runs int) error {
	nodes, err := strconv.Atoi(os.Getenv("SLURM_JOB_NUM_NODES"))
	if err != nil {
		return fmt.Errorf("this is no Slurm job: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return err
	}
	n := strconv.Itoa(ranksEach * nodes)
	job := sshJob{"true", nodes, []contender{
		{name: "gangrun", argv: []string{gangrun, "run", "--preflight", "off", "--mpi", "none", "-n", n, "--", "true"}},
		{name: "srun", argv: []string{"srun", "-n", n, "true"}},
		{name: "mpirun", argv: []string{"mpirun.openmpi", "--bind-to", "none", "-n", n, "true"}},
		{name: "hydra", argv: []string{"mpiexec.hydra", "-launcher", "slurm", "-n", n, "true"}},
	}}
	fmt.Printf("whole job in a Slurm job on %d simulated hosts, %d ranks each: median and middle half of %d alternating runs;\n", nodes, ranksEach, runs)
	fmt.Printf("  ratio of the medians, gangrun to the other, and 90 %% of it by bootstrap; aim: at most 1.5 of srun\n  %s\n", conditions())
	for _, c := range job.by {
		fmt.Printf("  %s\n", strings.Join(c.argv, " "))
	}
	took, hung, err := job.measure(ctx, dir, runs)
	if err != nil {
		return err
	}
	for i, c := range job.by {
		text, ratio := "none in time", "-"
		if len(took[i]) > 0 {
			text, ratio = took[i].String(), ratioOf(took[0], took[i]).String()
		}
		if hung[i] > 0 {
			ratio += fmt.Sprintf("; hung %d times", hung[i])
		}
		fmt.Printf("  %-8s %-32s %s\n", c.name, text, ratio)
	}
	fmt.Printf("  afterwards, %s\n", conditions())
	return nil
}
