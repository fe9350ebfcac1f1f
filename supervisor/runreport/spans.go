package runreport

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

// JobName returns the name by which the history recognises the runs of the same job: the name of the job or, if
// it has none, its command.
func JobName(name string, command []string) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%q", command)
}

// Spans returns those attempts of the run that have ended, in the form in which the history keeps them.
func (r Report) Spans() (all []saves.Span) {
	for _, a := range r.Attempts {
		if a.Started == nil || a.Ended == nil {
			continue
		}
		s := saves.Span{Job: JobName(r.Name, r.Command), Ran: a.Ended.Sub(*a.Started), Write: time.Duration(a.Saves.Write)}
		if a.Saves.Stall != nil {
			stall := time.Duration(*a.Saves.Stall)
			s.Stall = &stall
		}
		s.Hosts = Hosts(a.Placement)
		s.Failed = a.Cause != nil && survivable(a.Cause.Category)
		all = append(all, s)
	}
	return all
}

// survivable reports whether a job can survive such a failure by a start from its last checkpoint.
func survivable(c job.Category) bool {
	switch c {
	case job.TimeLimit, job.Cancelled, job.StoppedEarly, job.Straggler, job.LaunchError, job.DiskFull:
		return false
	}
	return c.Fault() != job.FaultUser
}

// Hosts returns the hosts on which ranks run. It returns each host once.
func Hosts(ranks []job.Rank) (names []string) {
	seen := map[string]bool{}
	for _, r := range ranks {
		if !seen[r.Host] {
			seen[r.Host] = true
			names = append(names, r.Host)
		}
	}
	return names
}
