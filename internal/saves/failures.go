package saves

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Span is an attempt of the past: how long its gang ran, and what its checkpoints cost.
type Span struct {
	Job    string   // names the job; the same for runs of the same job
	Hosts  []string // of the gang
	Ran    time.Duration
	Failed bool // by a fault that another attempt can survive
	// Write and Stall are as in Summary; Write is 0 if the attempt has written no checkpoint.
	Write time.Duration
	Stall *time.Duration
}

// leastFailures is how many failures tell a rate.
const leastFailures = 3

// Rate returns the mean time between failures of a job on some hosts, from the attempts of the past: of the
// same job, or else of any job on these hosts. The time of a gang counts for each of its hosts, because any of
// them may fail. If there were too few failures, it is what is usual for a cluster.
func Rate(past []Span, name string, hosts []string) job.SaveInterval {
	n := time.Duration(max(1, len(hosts)))
	own := func(s Span) (time.Duration, bool) {
		return s.Ran * time.Duration(max(1, len(s.Hosts))), s.Job == name
	}
	here := func(s Span) (time.Duration, bool) {
		shared := 0
		for _, h := range s.Hosts {
			if slices.Contains(hosts, h) {
				shared++
			}
		}
		return s.Ran * time.Duration(shared), shared > 0
	}
	for _, of := range []struct {
		source job.FailureSource
		time   func(Span) (time.Duration, bool)
	}{{job.FailuresOfJob, own}, {job.FailuresOfHosts, here}} {
		var ran time.Duration
		failed := 0
		for _, s := range past {
			if t, ok := of.time(s); ok {
				ran += t
				if s.Failed {
					failed++
				}
			}
		}
		if between := ran / time.Duration(max(1, failed)) / n; failed >= leastFailures && between > 0 {
			return job.SaveInterval{Failures: job.Duration(between), Source: of.source, Count: failed}
		}
	}
	return job.SaveInterval{Failures: job.Duration(UsualBetween(int(n))), Source: job.FailuresUsual}
}

// Costs returns what a checkpoint cost in the newest attempt of a job that has written any. ok is false if
// there is none. past has the newest attempt first.
func Costs(past []Span, name string) (write time.Duration, stall *time.Duration, ok bool) {
	for _, s := range past {
		if s.Job == name && s.Write > 0 {
			return s.Write, s.Stall, true
		}
	}
	return 0, nil, false
}
