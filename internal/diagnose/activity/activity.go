// Package activity describes what ranks were doing when gangrun ended them at a time limit.
package activity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// states has the states of processes in words. The most informative states come last.
var states = []struct {
	state job.ProcessState
	words string
}{
	{job.ProcessRunning, "running"},
	{job.ProcessSleeping, "sleeping"},
	{job.ProcessZombie, "ended, but not its threads or children"},
	{job.ProcessDisk, "waiting for a file system or a device"},
	{job.ProcessTraced, "stopped by a debugger"},
	{job.ProcessStopped, "stopped by a signal"},
}

// hung is the time without output after which a gang may hang.
const hung = 30 * time.Second

// Add adds to the Text and the Hint of r what the ranks were doing when gangrun began to end the gang. It also
// returns this as lines of evidence: one line for all ranks that were in the same state.
func Add(r *rule.Rule, all []job.Activity) []job.Line {
	if len(all) == 0 {
		return nil
	}
	var lines []job.Line
	var groups []string
	stopped := ""
	for _, s := range states {
		in := slices.DeleteFunc(slices.Clone(all), func(a job.Activity) bool { return a.State != s.state })
		if len(in) == 0 {
			continue
		}
		who := spans(in)
		line := job.Line{Source: job.SourceAgent, Rank: -1, Host: in[0].Host, Text: who + " " + s.words + "; " + silence(in)}
		if len(in) == 1 {
			line.Rank = in[0].Rank
		}
		if slices.ContainsFunc(in, func(a job.Activity) bool { return a.Host != line.Host }) {
			line.Host = ""
		}
		lines, groups = append(lines, line), append(groups, who+" "+s.words)
		if s.state == job.ProcessStopped || s.state == job.ProcessTraced {
			stopped = who
		}
	}
	r.Text += "; " + silence(all) + "; " + strings.Join(groups, ", ")
	switch {
	case stopped != "":
		r.Hint = fmt.Sprintf("find out what stopped %s, which the others may have waited for; else %s", stopped, r.Hint)
	case stood(all) && spoke(all):
		r.Hint = fmt.Sprintf("the gang stood still for the last %s of %s: run it again and, while it hangs, %s", rough(still(all)), rough(age(all)), lookAt)
	case stood(all) || quiet(all) >= hung:
		r.Hint = "if the gang hung, run it again and, while it hangs, " + lookAt + "; else " + r.Hint
	}
	return lines
}

// lookAt returns how to find out what a rank waits for.
const lookAt = "look at a rank with py-spy dump --pid PID or gdb -p PID (gangrun status shows the PIDs)"

// stood reports whether there was no progress for at least half of the time that the gang had run.
func stood(all []job.Activity) bool { return age(all) > 0 && 2*still(all) >= age(all) }

// spoke reports whether a rank had printed anything. If none had, the gang may have worked without
// output.
func spoke(all []job.Activity) bool {
	return slices.ContainsFunc(all, func(a job.Activity) bool { return a.Quiet < a.Age })
}

// age returns for how long the gang had run.
func age(all []job.Activity) time.Duration {
	oldest := all[0].Age
	for _, a := range all {
		oldest = max(oldest, a.Age)
	}
	return time.Duration(oldest)
}

// still returns for how long there was neither output nor a new step.
func still(all []job.Activity) time.Duration {
	if idle, ok := idle(all); ok {
		return min(idle, quiet(all))
	}
	return quiet(all)
}

// silence says in words for how long there was no progress, as in "no output for 3m12s, no new step for 3m13s".
func silence(all []job.Activity) string {
	said := "no output for " + rough(quiet(all))
	if idle, ok := idle(all); ok {
		said += ", no new step for " + rough(idle)
	}
	return said
}

// idle returns for how long no rank had printed a new step. ok is false if no rank ever had.
func idle(all []job.Activity) (least time.Duration, ok bool) {
	for _, a := range all {
		if a.Idle != nil && (!ok || time.Duration(*a.Idle) < least) {
			least, ok = time.Duration(*a.Idle), true
		}
	}
	return least, ok
}

// quiet returns for how long none of the ranks had printed anything.
func quiet(all []job.Activity) time.Duration {
	least := all[0].Quiet
	for _, a := range all {
		least = min(least, a.Quiet)
	}
	return time.Duration(least)
}

// rough formats a duration: with tenths of a second if it is below ten seconds, otherwise in whole seconds.
func rough(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// spans names ranks, as in "ranks 0-2,4-7".
func spans(all []job.Activity) string {
	ranks := make([]int, len(all))
	for i, a := range all {
		ranks[i] = a.Rank
	}
	slices.Sort(ranks)
	return text.Ranks(ranks)
}
