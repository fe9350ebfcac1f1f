//go:build soak

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// atOnce is the number of beds that are up at the same time. With more beds, the machine would be too slow for the
// measurements.
const atOnce = 3

// TestSoakHostFaults tries every fault with every MPI library, and checks that gangrun learns of it as soon as
// promised. If UPDATE is 1, it writes the document. Otherwise it compares the results with the document.
func TestSoakHostFaults(t *testing.T) {
	cells := make([][]hostCell, len(hostFaults))
	places := make(chan struct{}, atOnce)
	var mu sync.Mutex
	t.Run("all", func(t *testing.T) {
		for i, f := range hostFaults {
			programs := slices.Clone(farPrograms)
			if f.torch {
				programs = append(programs, farTorch)
			}
			cells[i] = make([]hostCell, len(programs))
			for j, program := range programs {
				t.Run(f.name+"/"+program.name, func(t *testing.T) {
					t.Parallel()
					places <- struct{}{}
					defer func() { <-places }()
					if program.name == farTorch.name {
						needPython(t, "torch")
					}
					c := f.try(t, program, measured)
					t.Logf("%+v", c)
					mu.Lock()
					defer mu.Unlock()
					cells[i][j] = c
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	for i, f := range hostFaults {
		for _, c := range cells[i] {
			if f.suspect && c.suspect > farSuspect {
				t.Errorf("%s: suspect after %s, want it within %s", c.row(), c.suspect, farSuspect)
			}
			if f.known > 0 && (c.known < 0 || c.known > f.known) {
				t.Errorf("%s: known after %s, want it within %s", c.row(), c.known, f.known)
			}
		}
	}
	path := filepath.FromSlash(faultsPath)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(faultsPage(cells)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(cells...) {
		if !strings.Contains(string(page), c.row()) {
			t.Errorf("%s does not say %q: run make docs", faultsPath, c.row())
		}
	}
}

// faultsPage returns the text of the document.
func faultsPage(cells [][]hostCell) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What happens when a host fails

Written by `+"`make docs`"+`, which causes each of these faults on h2, one of four
simulated hosts (internal/testhosts). The gang has %d ranks, two on each host, and is
run with `+"`--mpi`"+` none, openmpi and mpich. The ranks print numbered lines to both streams
(examples/steady). With MPI and torch (gloo), they also compute a sum over all ranks at
every step. Most faults begin when every rank has printed five lines. Wrong host keys,
users, ports and addresses, the full disk, the read-only /tmp and the wrong clock are
there before gangrun starts.

- suspect: the time until gangrun warns of a silent host. It warns after 3 s without contact.
- known: the time until gangrun ends the gang, or gives up because it cannot reach h2.
  A silent host counts as lost after --host-timeout (%s in most of these cases, 10 s by default).
- ended: the time until gangrun has ended. Before that, gangrun waits until no rank can be left on a
  lost host: until the host confirms that, or until --orphan-grace (%s here, 20 s by
  default) and 5 s have passed since gangrun closed its last connection to the host. Another attempt would
  have to wait in the same way.
- left: the time from the end of gangrun until no process and no lease of the run was
  left on the hosts. For this measurement, a host that was cut off or frozen is restored
  first. For "controller killed", it is the time for which ranks still run after the end of the
  controller: the agent of the ranks ends them when it has received nothing for --orphan-grace.

If the job goes on, every log has exactly the bytes that its rank has printed. If the job
fails, a log may lack its end, but has no gap and no changed byte. There are no retries
(--retries 0), so the exit code is that of the first failure.

| fault | --mpi | result | exit code | suspect | known | ended | left |
|---|---|---|---|---|---|---|---|
`, farRanks, farTimeout, farGrace)
	for _, c := range slices.Concat(cells...) {
		fmt.Fprintf(&b, "%s %s | %s | %s | %s |\n", c.row(), figure(c.suspect), figure(c.known), figure(c.ended), figure(c.gone))
	}
	b.WriteString("\n## What the user sees\n\nThe screen with `--mpi none`, without the output of ranks. Of the summary, this page has only the lines about the fault.\n")
	for _, row := range cells {
		fmt.Fprintf(&b, "\n### %s\n\n```\n%s\n```\n", row[0].fault, strings.Join(row[0].seen, "\n"))
		if row[0].fault == "frozen" {
			b.WriteString("\nIf a frozen host resumes after its ranks counted as gone, its agent ends them at once.\nThe column \"left\" of the table has the time that this takes. Until then, the ranks may still write.\n")
		}
	}
	return b.String()
}

// figure formats a duration with tenths of a second. It returns "" if there is none.
func figure(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
