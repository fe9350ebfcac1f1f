package watch

import (
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// HangCause returns the cause of an attempt that gangrun ended because the gang hung. hosts has the host of
// each rank. faulthandler is true if Python programs write their stacks when gangrun asks for them.
func HangCause(h job.HangReport, hosts map[int]string, faulthandler bool) job.Cause {
	c := job.Cause{
		Category: job.Hang, Signature: "hang-" + string(h.Stage), Rank: -1, Confidence: max(h.Confidence, 0.5),
		Text: h.Text, Retry: job.RetryAgain,
		Hint: "gangrun report shows where each rank was; a healthy job that is silent for longer needs --hang-timeout TIME, or 0 for never",
	}
	if len(h.Ranks) == 1 {
		c.Rank = h.Ranks[0]
		c.Host = hosts[c.Rank]
	}
	if len(h.Unread) > 0 && !faulthandler {
		c.Hint += "; run it with --faulthandler to see the lines of the Python program"
	}
	for _, p := range h.Collectives {
		c.Evidence = append(c.Evidence, job.Line{Source: job.SourceFlightRecord, Rank: -1, Text: flightrecord.Words(p)})
	}
	for _, group := range h.Groups {
		line := job.Line{Source: job.SourceAgent, Rank: -1, Text: stacktree.Text([]job.StackGroup{group})}
		if len(group.Ranks) == 1 {
			line.Rank = group.Ranks[0]
			line.Host = hosts[line.Rank]
		}
		c.Evidence = append(c.Evidence, line)
	}
	return c
}

// advice has, for each reason why a rank is slow, what the user can do about it.
var advice = map[job.StragglerReason]string{
	job.SlowUnknown:  "compare its host with the others",
	job.SlowWork:     "give the ranks the same amount of work; if they have it, the CPU of its host is slower",
	job.SlowQuota:    "raise the CPU limit of its control group or container, or give the job fewer ranks there",
	job.SlowShared:   "end the other processes on its host, or leave the host out with --hosts",
	job.SlowCores:    "give each rank the same number of CPUs",
	job.SlowDisk:     "put its data and checkpoints on a faster disk, or look for what else uses the disk",
	job.SlowMemory:   "give the job fewer ranks there, or end the other processes on its host",
	job.SlowNetwork:  "look for errors and the speed of its network link (ethtool, ip -s link), and for other traffic on it",
	job.SlowThrottle: "look for the reason in nvidia-smi -q -d PERFORMANCE: heat, or a limit of power",
}

// Advice says what the user can do about a rank that is slow for the reason r.
func Advice(r job.StragglerReason) string { return advice[r] }

// StragglerCause returns the cause of an attempt that gangrun ended because a rank was slow.
func StragglerCause(r job.StragglerReport) job.Cause {
	return job.Cause{
		Category: job.Straggler, Signature: "slow-" + string(r.Reason), Rank: r.Rank, Host: r.Host, Confidence: 0.8,
		Text: r.Text, Hint: advice[r.Reason],
	}
}
