package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// slurmEndings are the first cells of the table of endings in docs/batch.md. The tests of Slurm
// compare each row with what they see, or write it if UPDATE is 1.
var slurmEndings = []string{
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
	"`scancel`, and a line follows `gangrun run`",
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
}

// slurmDocument has the table between two marks.
const (
	slurmDocument = "../../docs/batch.md"
	slurmBegin    = "<!-- endings: written by UPDATE=1 go test -run TestSlurm ./cmd/gangrun -->\n"
	slurmEnd      = "<!-- end of endings -->\n"
	slurmHead     = "| what happens | what gangrun says | exit code | left on any node |\n|---|---|---|---|\n"
)

// slurmDocumentLock is held while the document is rewritten.
var slurmDocumentLock sync.Mutex

// slurmTable returns the text before the table, its rows, and the text after it.
func slurmTable(t *testing.T) (before string, rows []string, after string) {
	t.Helper()
	page, err := os.ReadFile(filepath.FromSlash(slurmDocument))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), slurmBegin)
	table, after, ok2 := strings.Cut(rest, slurmEnd)
	table, ok3 := strings.CutPrefix(table, slurmHead)
	if !ok1 || !ok2 || !ok3 {
		t.Fatalf("%s has no table between %q and %q", slurmDocument, slurmBegin, slurmEnd)
	}
	for row := range strings.Lines(table) {
		rows = append(rows, row)
	}
	return before, rows, after
}

// ofEnding returns a function that reports whether a row is that of an ending.
func ofEnding(what string) func(row string) bool {
	return func(row string) bool { return strings.HasPrefix(row, "| "+what+" | ") }
}

// TestDocumentSlurm: the table has one row for each ending, in order.
func TestDocumentSlurm(t *testing.T) {
	_, rows, _ := slurmTable(t)
	if len(rows) != len(slurmEndings) {
		t.Errorf("%s: the table has %d rows, want %d", slurmDocument, len(rows), len(slurmEndings))
	}
	for i, row := range rows {
		if i < len(slurmEndings) && !ofEnding(slurmEndings[i])(row) {
			t.Errorf("%s: row %d is %q, want %q", slurmDocument, i+1, row, slurmEndings[i])
		}
	}
}

// ending holds a row of the table against what has come of a job of bob's: what gangrun said, and
// its exit code. It waits until nothing of the job is left.
func (b *slurmBed) ending(what, said, code string) {
	b.t.Helper()
	number := slices.Index(slurmEndings, what)
	if number < 0 {
		b.t.Fatalf("slurmEndings lacks %q", what)
	}
	row := fmt.Sprintf("| %s | %s | %s | %d |\n", what, said, code, len(b.left()))
	if b.t.Failed() {
		return
	}
	slurmDocumentLock.Lock()
	defer slurmDocumentLock.Unlock()
	before, rows, after := slurmTable(b.t)
	if os.Getenv("UPDATE") == "1" {
		rows = slices.DeleteFunc(rows, func(row string) bool {
			return ofEnding(what)(row) || !slices.ContainsFunc(slurmEndings, func(w string) bool { return ofEnding(w)(row) })
		})
		at := 0
		for _, earlier := range slurmEndings[:number] {
			if i := slices.IndexFunc(rows, ofEnding(earlier)); i >= 0 {
				at = i + 1
			}
		}
		rows = slices.Insert(rows, at, row)
		page := before + slurmBegin + slurmHead + strings.Join(rows, "") + slurmEnd + after
		if err := os.WriteFile(filepath.FromSlash(slurmDocument), []byte(page), 0o644); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	if !slices.Contains(rows, row) {
		b.t.Errorf("%s does not say %q", slurmDocument, row)
	}
}

// left returns the processes of bob's jobs that are left on the nodes. They have time to end.
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

// said returns what gangrun has printed and a pattern matches, as the table shows it: without the
// number of the job and the names of nodes.
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
