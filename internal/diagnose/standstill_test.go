package diagnose

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// doing returns the activity of a rank in a state that was quiet and idle for so long. If idle is negative, the rank
// has never printed a step.
func doing(rank int, host string, state job.ProcessState, quiet, idle time.Duration) job.Activity {
	a := job.Activity{Rank: rank, Host: host, State: state, Quiet: job.Duration(quiet)}
	if idle >= 0 {
		i := job.Duration(idle)
		a.Idle = &i
	}
	return a
}

func aged(a job.Activity, age time.Duration) job.Activity {
	a.Age = job.Duration(age)
	return a
}

// TestStandstill checks that the cause of a time limit says for how long nothing happened, and what the ranks did.
func TestStandstill(t *testing.T) {
	const limit = "the run's time limit passed, and gangrun ended the gang"
	long := 192 * time.Second
	var sleepers, odd []job.Activity
	for rank := range 8 {
		state := job.ProcessSleeping
		if rank == 3 {
			state = job.ProcessStopped
		}
		sleepers = append(sleepers, doing(rank, "h1", state, long+time.Duration(rank)*time.Second, long+time.Duration(8-rank)*time.Second))
	}
	for rank := range 20 {
		odd = append(odd, doing(2*rank, "h1", job.ProcessRunning, 0, -1))
	}
	for name, c := range map[string]struct {
		activity   []job.Activity
		text, hint string
		evidence   []string
	}{
		"nothing is known": {nil, "", "raise --timeout", nil},
		"one is stopped": {sleepers, "; no output for 3m12s, no new step for 3m13s; ranks 0-2,4-7 sleeping, rank 3 stopped by a signal",
			"find out what stopped rank 3, which the others may have waited for; else raise --timeout",
			[]string{"-1 h1 ranks 0-2,4-7 sleeping; no output for 3m12s, no new step for 3m13s", "3 h1 rank 3 stopped by a signal; no output for 3m15s, no new step for 3m17s"}},
		"all sleep": {[]job.Activity{doing(1, "h2", job.ProcessSleeping, long, -1), doing(0, "h1", job.ProcessSleeping, 2*long, -1)},
			"; no output for 3m12s; ranks 0-1 sleeping",
			"if the gang hung, run it again and, while it hangs, look at a rank with py-spy dump --pid PID or gdb -p PID (gangrun status shows the PIDs); else raise --timeout",
			[]string{"-1  ranks 0-1 sleeping; no output for 3m12s"}},
		"it stood still for most of the run": {[]job.Activity{aged(doing(0, "h1", job.ProcessSleeping, 5200*time.Millisecond, 5210*time.Millisecond), 5300*time.Millisecond)},
			"; no output for 5.2s, no new step for 5.2s; rank 0 sleeping",
			"the gang stood still for the last 5.2s of 5.3s: run it again and, while it hangs, look at a rank with py-spy dump --pid PID or gdb -p PID (gangrun status shows the PIDs)",
			[]string{"0 h1 rank 0 sleeping; no output for 5.2s, no new step for 5.2s"}},
		"it printed, and made no step, as in a long evaluation": {[]job.Activity{aged(doing(0, "h1", job.ProcessRunning, 0, 4*time.Second), 5*time.Second)},
			"; no output for 0.0s, no new step for 4.0s; rank 0 running", "raise --timeout",
			[]string{"0 h1 rank 0 running; no output for 0.0s, no new step for 4.0s"}},
		"it never said anything": {[]job.Activity{aged(doing(0, "h1", job.ProcessRunning, 5*time.Second, -1), 5*time.Second)},
			"; no output for 5.0s; rank 0 running",
			"if the gang hung, run it again and, while it hangs, look at a rank with py-spy dump --pid PID or gdb -p PID (gangrun status shows the PIDs); else raise --timeout",
			[]string{"0 h1 rank 0 running; no output for 5.0s"}},
		"it stood still at last": {[]job.Activity{aged(doing(0, "h1", job.ProcessRunning, 2*time.Second, 2*time.Second), 10*time.Second)},
			"; no output for 2.0s, no new step for 2.0s; rank 0 running", "raise --timeout",
			[]string{"0 h1 rank 0 running; no output for 2.0s, no new step for 2.0s"}},
		"it goes on": {[]job.Activity{doing(0, "h1", job.ProcessRunning, 130*time.Millisecond, 2*time.Second)},
			"; no output for 0.1s, no new step for 2.0s; rank 0 running", "raise --timeout",
			[]string{"0 h1 rank 0 running; no output for 0.1s, no new step for 2.0s"}},
		"all states": {[]job.Activity{doing(0, "h1", job.ProcessTraced, 0, -1), doing(1, "h1", job.ProcessDisk, 0, -1), doing(2, "h1", job.ProcessZombie, 0, -1)},
			"; no output for 0.0s; rank 2 ended, but not its threads or children, rank 1 waiting for a file system or a device, rank 0 stopped by a debugger",
			"find out what stopped rank 0, which the others may have waited for; else raise --timeout",
			[]string{"2 h1 rank 2 ended, but not its threads or children; no output for 0.0s", "1 h1 rank 1 waiting for a file system or a device; no output for 0.0s", "0 h1 rank 0 stopped by a debugger; no output for 0.0s"}},
		"many": {odd, "; no output for 0.0s; ranks 0,2,4,6,8,10,12,14 and 12 more running", "raise --timeout",
			[]string{"-1 h1 ranks 0,2,4,6,8,10,12,14 and 12 more running; no output for 0.0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := four().exit(0, 10, stopped)
			g.Ended, g.Activity = job.EndedTimeLimit, c.activity
			cause := Diagnose(g.Evidence)
			sane(t, cause)
			if cause.Text != limit+c.text || cause.Hint != c.hint {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", cause.Text, cause.Hint, limit+c.text, c.hint)
			}
			var got []string
			for _, l := range cause.Evidence {
				got = append(got, strings.Join([]string{strconv.Itoa(l.Rank), l.Host, l.Text}, " "))
				if l.Source != job.SourceAgent {
					t.Errorf("%q is the word of %s", l.Text, l.Source)
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.evidence, "\n") {
				t.Errorf("evidence\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.evidence, "\n"))
			}
			g.Ended = job.EndedCancelled
			if cause := Diagnose(g.Evidence); len(cause.Evidence) != 0 || strings.Contains(cause.Text, "no output") {
				t.Errorf("a gang that was cancelled: %+v", cause)
			}
		})
	}
}
