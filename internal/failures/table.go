package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// row is a reason, with what the contenders have done with its job.
type row struct {
	reason
	verdict  verdict
	loop     loop
	resuming loop // the same as loop if the job saves no checkpoints
}

// mostWasted limits gangrun's waste, as a part of the loop's waste.
const mostWasted = 0.10

// totals has the rank-seconds that all jobs together have wasted.
type totals struct{ gangrun, loop, resuming float64 }

// sum adds up the rows.
func sum(rows []row) totals {
	var t totals
	for _, r := range rows {
		t.gangrun += r.verdict.wasted
		t.loop += r.loop.wasted
		t.resuming += r.resuming.wasted
	}
	return t
}

// head is the first line of the table.
var head = []string{"reason", "category found", "right", "action", "caught by", "gangrun", "loop", "ratio", "loop that resumes"}

// cells returns the line of a reason in the table.
func (r row) cells() []string {
	right := "yes"
	if r.verdict.wrong(r.reason) != "" {
		right = "NO"
	}
	return []string{r.name, string(r.verdict.category), right, string(r.verdict.action), string(r.verdict.by),
		fmt.Sprintf("%.1f", r.verdict.wasted), fmt.Sprintf("%.1f", r.loop.wasted), percent(r.verdict.wasted, r.loop.wasted),
		fmt.Sprintf("%.1f", r.resuming.wasted)}
}

// cells returns the line of the totals in the table.
func (t totals) cells() []string {
	return []string{"all", "", "", "", "", fmt.Sprintf("%.1f", t.gangrun), fmt.Sprintf("%.1f", t.loop), percent(t.gangrun, t.loop),
		fmt.Sprintf("%.1f", t.resuming)}
}

// percent formats a part of a whole as a percentage.
func percent(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// text returns the table for a terminal.
func text(rows []row) string {
	lines := [][]string{head}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	lines = append(lines, sum(rows).cells())
	widths := make([]int, len(head))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		var padded strings.Builder
		for i, cell := range line {
			fmt.Fprintf(&padded, "%-*s  ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(padded.String(), " ") + "\n")
	}
	return b.String()
}

// markdown returns a line of a table in a page.
func markdown(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// rule returns the line below the head of a table with that number of columns.
func rule(columns int) string { return "|" + strings.Repeat("---|", columns) + "\n" }

// page returns the text of docs/failures.md.
func page(rows []row, longest time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageTop, len(rows), ranks, tries, longest, reason{minutes: 1}.failAfter(longest).Milliseconds(), late/time.Second, runtime.NumCPU())
	b.WriteString(markdown(head...) + rule(len(head)))
	for _, r := range rows {
		cells := r.cells()
		cells[1] = fmt.Sprintf("[`%s`](categories.md#%s)", cells[1], cells[1])
		cells[3] = "`" + cells[3] + "`"
		b.WriteString(markdown(cells...))
	}
	t, saving := sum(rows), 0.0
	b.WriteString(markdown(t.cells()...))
	for _, r := range rows {
		if r.saves {
			saving += r.loop.wasted
		}
	}
	fmt.Fprintf(&b, "\nThe jobs that save checkpoints account for %s of the total of the loop. gangrun wastes %s of what the resuming loop wastes.\n",
		percent(saving, t.loop), percent(t.gangrun, t.resuming))
	return b.String()
}

// pageTop is the text above the table. Its values are the numbers of jobs, ranks and tries, the longest time to
// failure, a minute of the study, the time from which jobs run side by side, and the number of cores.
const pageTop = `# The failures of the Philly study

<!-- Written by "make failures UPDATE=1" from internal/failures. Change it there. -->

The Philly study (Jeon et al., USENIX ATC 2019) counts the reasons for which jobs failed on a cluster of GPUs. [examples/failures](../examples/failures/README.md) has a job for each of the %[1]d reasons that its table 7 names. ` + "`make failures`" + ` runs each job under gangrun, with the defaults of gangrun, and under mpirun in a shell loop of up to %[3]d tries. It also runs each job that saves checkpoints in a loop that resumes from them. Each job has %[2]d ranks, and each rank has a simulated GPU. The programs themselves print what CUDA, UCX or Slurm would print.

In the study, each reason has a median time after which jobs failed. The job for a reason fails after this time, scaled so that a minute becomes %[5]d ms. The longest time is then %[4]s. The jobs that can be continued save a checkpoint every 2 s. Jobs that run for %[6]d s or more before they fail run side by side, because they only sleep; all others run one after the other. These figures are from a machine with %[7]d cores.

The last columns show how much time was wasted, in rank-seconds. Each rank has one GPU, so they are also GPU-seconds. What counts as wasted:

- **gangrun**: the time of all trials, and the part of each failed attempt that came after its last good checkpoint. If the job never reached its end, the whole time of all attempts counts.
- **loop**: the time of all tries that failed. A retry starts from the beginning. The column **ratio** is the time that gangrun wastes, divided by the time that this loop wastes.
- **loop that resumes**: the part of each failed try that came after it wrote its newest checkpoint file. A retry starts from that file. If the job never reached its end, the whole time of all tries counts. For a job without checkpoints, the figure is that of **loop**.

**Caught by** says what found the failure: the [static preflight](preflight.md#checks), the [trial](preflight.md#the-trial), or the end of the gang. A job counts as **right** if gangrun found the category that the [examples](../examples/failures/README.md) name and decided for the default action of that [category](categories.md). (If the preflight or the trial has failed, no gang starts, whatever the action is.) The job must also have been caught where the examples say, and have reached its end if they say so.

`

// readme returns the table in the README of the examples.
func readme() string {
	columns := []string{"reason", "job", "what the job does", "category", "action", "caught by", "reaches its end"}
	b := markdown(columns...) + rule(len(columns))
	for _, r := range reasons {
		end := "no"
		if r.recovers {
			end = "yes"
		}
		b += markdown(r.name, fmt.Sprintf("[%s](%s.yaml)", r.job, r.job), r.does, "`"+string(r.category)+"`", "`"+string(r.category.Action())+"`", string(r.by), end)
	}
	return b
}
