package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// slurmEndings is the table of the ways in which jobs in Slurm end.
var slurmEndings = docTable{
	path:  "../../docs/batch.md",
	begin: "<!-- endings: written by UPDATE=1 go test -run TestSlurm ./cmd/gangrun -->\n",
	end:   "<!-- end of endings -->\n",
	head:  "| what happens | what gangrun says | exit code | left on any node |\n|---|---|---|---|\n",
	first: []string{
		"`-N4`, `-n 8`, `--mpi none`",
		"`-N4`, `-n 8`, `--mpi openmpi`",
		"`-N4`, `-n 8`, `--mpi mpich`",
		"`srun -n 4 gangrun run`",
		"`gangrun run --detach` in a script",
		"`gangrun run` in a heterogeneous job",
		"`SLURM_JOB_ID` of a job that has ended",
		"two jobs share the GPUs of two nodes",
		"two jobs share the GPUs of two nodes, and may open all devices",
		"a rank on another node exceeds the memory of the job",
		"a rank is killed",
		"the time limit passes",
		"the time limit comes near, with `--time-reserve`",
		"the time limit comes near, and `--before-stop` has written a checkpoint",
		"the time limit comes near in each leg, with `--requeue`",
		"a job in a partition of higher priority takes the nodes, with `--requeue`",
		"`scontrol requeue`",
		"`scancel`",
		"`scancel`, if `gangrun run` is not the last line of the script",
		"`scancel` of a job of `salloc`",
		"`--signal=USR1`, and the ranks handle it",
		"`--signal=USR2`, with `--on-signal stop`",
		"a node is powered off",
		"a node is powered off, with `--no-kill` and a spare node",
		"the node of the script is powered off, with `--no-kill` and `--requeue`",
		"a rank prints an ECC error, with `--requeue`",
		"the kernel of a node logs an ECC error, with `--requeue`",
		"two legs without a checkpoint, with `--requeue`",
		"`gangrun submit` of a good job",
		"`gangrun submit` of a job with `import nosuch`",
	},
}

// TestDocumentSlurm checks that the table has one row for each of these ways, in order.
func TestDocumentSlurm(t *testing.T) { slurmEndings.inOrder(t) }

// ending compares a row of the table with the end of a job of bob: what gangrun said, and its exit code. It then
// checks that nothing of the job is left.
func (b *slurmBed) ending(what, said, code string) {
	b.t.Helper()
	slurmEndings.row(b.t, what, said, code, fmt.Sprint(len(b.left())))
}

// left returns the processes of bob's jobs that are left on the nodes after some time.
func (b *slurmBed) left() (left []testhosts.Process) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var err error
		if left, err = b.Left(b.mark + "\x00"); err != nil {
			b.t.Fatal(err)
		} else if len(left) == 0 {
			return nil
		}
	}
	b.t.Errorf("left: %v", left)
	return left
}

// said returns the part of gangrun's output that matches a pattern, in the form of the table: without the ID of the
// job and the names of nodes.
func (b *slurmBed) said(out, pattern string) string {
	b.t.Helper()
	text := regexp.MustCompile(pattern).FindString(out)
	if text == "" {
		b.t.Errorf("gangrun has not said %q:\n%s", pattern, out)
	}
	text = strings.TrimPrefix(text, "gangrun: ")
	text = regexp.MustCompile(`\bjob \d+`).ReplaceAllString(text, "job N")
	return regexp.MustCompile(`\bh\d+`).ReplaceAllString(text, "NODE")
}
