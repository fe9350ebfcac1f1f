package saves

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Span describes an attempt of the past: how long its gang ran, and how much time its checkpoints took.
type Span struct {
	Job    string   // a name of the job, which all runs of the job share
	Hosts  []string // the hosts of the gang
	Ran    time.Duration
	Failed bool // the attempt failed by a fault that another attempt can survive
	// Write and Stall are as in Summary. Write is 0 if the attempt has written no checkpoint.
	Write time.Duration
	Stall *time.Duration
}

// leastFailures is the smallest number of failures from which a rate is computed.
const leastFailures = 3

// Rate returns the mean time between failures of the job called name on some hosts. It computes that time from
// past attempts of the same job or, if these have too few failures, from past attempts of any job on these
// hosts. The time of a gang counts once for each of its hosts, because any host may fail. If these attempts
// have too few failures, too, Rate returns the time that is usual for a cluster.
func Rate(past []Span, name string, hosts []string) job.SaveInterval {
	n := max(1, len(hosts))
	own := func(s Span) (float64, bool) { // in seconds on one host
		return s.Ran.Seconds() * float64(max(1, len(s.Hosts))), s.Job == name
	}
	here := func(s Span) (float64, bool) {
		shared := 0
		for _, h := range s.Hosts {
			if slices.Contains(hosts, h) {
				shared++
			}
		}
		return s.Ran.Seconds() * float64(shared), shared > 0
	}
	for _, of := range []struct {
		source job.FailureSource
		time   func(Span) (float64, bool)
	}{{job.FailuresOfJob, own}, {job.FailuresOfHosts, here}} {
		ran := 0.0
		failed := 0
		for _, s := range past {
			if t, ok := of.time(s); ok {
				ran += t
				if s.Failed {
					failed++
				}
			}
		}
		between := min(ran/float64(max(1, failed))/float64(n)*float64(time.Second), 1<<62)
		if failed >= leastFailures && between >= 1 {
			return job.SaveInterval{Failures: job.Duration(between), Source: of.source, Count: failed}
		}
	}
	return job.SaveInterval{Failures: job.Duration(UsualBetween(n)), Source: job.FailuresUsual}
}

// Costs returns how much time a checkpoint took in the newest attempt of the job called name that has written a
// checkpoint. ok is false if there is no such attempt. past has the newest attempt first.
func Costs(past []Span, name string) (write time.Duration, stall *time.Duration, ok bool) {
	for _, s := range past {
		if s.Job == name && s.Write > 0 {
			return s.Write, s.Stall, true
		}
	}
	return 0, nil, false
}
