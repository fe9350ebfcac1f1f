// Package batchlimit says when the batch system ends the job that this process is in. It knows OAR,
// Torque and Flux. Package slurmjob asks Slurm. Other systems have no variable and no quick command
// for that.
package batchlimit

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// System has the functions with which this package asks the operating system. Tests replace them.
type System struct {
	Lookup  func(name string) (string, bool)                  // os.LookupEnv
	Changed func(path string) (time.Time, error)              // returns when a file was last changed
	Run     func(name string, args ...string) ([]byte, error) // runs a command and returns its output
	Now     func() time.Time
}

// walltimes has variables of batch systems. One variable has the number of seconds that a job may run. The other
// variable has the path of a file that the batch system writes when the job starts.
var walltimes = []struct{ seconds, file string }{
	{"OAR_JOB_WALLTIME_SECONDS", "OAR_NODEFILE"},
	{"PBS_WALLTIME", "PBS_NODEFILE"}, // Torque
}

// End returns when the batch system ends the job that this process is in. ok is false if that
// is not known, or if the job has no limit.
func (s System) End() (end time.Time, ok bool) {
	for _, w := range walltimes {
		left, known := seconds(s.get(w.seconds))
		if !known {
			continue
		}
		start, err := s.Changed(s.get(w.file))
		return start.Add(left), err == nil
	}
	if s.get("FLUX_JOB_ID") == "" && s.get("FLUX_URI") == "" {
		return time.Time{}, false
	}
	out, err := s.Run("flux", "job", "timeleft")
	if err != nil {
		return time.Time{}, false
	}
	left, known := seconds(string(out))
	return s.Now().Add(left), known
}

func (s System) get(name string) string {
	value, _ := s.Lookup(name)
	return value
}

// seconds reads a number of seconds. ok is false if there is no limit. For that, Flux prints the largest number of 32
// bits, or a larger one.
func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n >= math.MaxUint32 {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}
