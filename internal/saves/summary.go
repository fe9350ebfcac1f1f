package saves

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// maxNewest is the maximum number of reports that a Summary keeps. The medians are those of these reports.
const maxNewest = 30

// Summary sums up the reports of an attempt. Its JSON names are an API.
type Summary struct {
	Good   int `json:"good"`   // checkpoints
	Broken int `json:"broken"` // checkpoints
	// The following fields are medians of the newest good checkpoints. Bytes is the size, Write is how long it
	// took to write a checkpoint, Stall is how long the training stood still for a checkpoint, and Every is the
	// time between two checkpoints. An unknown Stall is null. An unknown Every is 0.
	Bytes int64         `json:"bytes"`
	Write job.Duration  `json:"write"`
	Stall *job.Duration `json:"stall"`
	Every job.Duration  `json:"every"`
	// Interval is how often the job should save; null if that is not known.
	Interval *job.SaveInterval `json:"interval"`
	// Newest has the newest reports, in the order in which the checkpoints were begun.
	Newest []job.SaveReport `json:"newest"`
}

// Add adds a report.
func (s *Summary) Add(r job.SaveReport) {
	switch {
	case r.State == job.SaveWriting:
		return
	case r.Good():
		s.Good++
	case r.State == job.SaveBroken:
		s.Broken++
	}
	s.Newest = append(slices.Clone(s.Newest[max(0, len(s.Newest)-maxNewest+1):]), r)
	slices.SortStableFunc(s.Newest, func(a, b job.SaveReport) int { return a.Begun.Compare(b.Begun) })
	s.measure()
}

// measure computes the medians.
func (s *Summary) measure() {
	var bytes []int64
	var writes, stalls, gaps []time.Duration
	var last *job.SaveReport
	for i := range s.Newest {
		r := &s.Newest[i]
		if !r.Good() && r.State != job.SaveBroken {
			continue
		}
		if last == nil {
			last = r
		} else if apart(r.Begun, last.Begun, time.Duration(last.Write), r.Step, last.Step) {
			gaps, last = append(gaps, r.Begun.Sub(last.Begun)), r
		}
		if !r.Good() {
			continue
		}
		bytes, writes = append(bytes, r.Bytes), append(writes, time.Duration(r.Write))
		if r.Stall != nil {
			stalls = append(stalls, time.Duration(*r.Stall))
		}
	}
	if len(bytes) > 0 {
		s.Bytes, s.Write = median(bytes), job.Duration(median(writes))
	}
	if len(stalls) > 0 {
		stall := job.Duration(median(stalls))
		s.Stall = &stall
	}
	if len(gaps) > 0 {
		s.Every = job.Duration(median(gaps))
	}
}

// Last returns the newest good checkpoint, or nil.
func (s Summary) Last() *job.SaveReport {
	for i, r := range slices.Backward(s.Newest) {
		if r.Good() {
			return &s.Newest[i]
		}
	}
	return nil
}

// Age says in words how old the newest good checkpoint is. It returns "" if there is none.
func (s Summary) Age(now time.Time) string {
	last := s.Last()
	if last == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s ago", text.Printable(name(*last)), about(max(0, now.Sub(last.Begun.Add(time.Duration(last.Write))))))
}

// Line says in one line which checkpoints were written. It returns "" if none was written.
func (s Summary) Line() string {
	if s.Good+s.Broken == 0 {
		return ""
	}
	var first []string
	first = append(first, fmt.Sprintf("%d good", s.Good))
	if s.Broken > 0 {
		first = append(first, fmt.Sprintf("%d broken", s.Broken))
	}
	last := s.Last()
	if last == nil {
		return strings.Join(first, ", ")
	}
	newest := fmt.Sprintf("newest %s at %s", text.Printable(name(*last)), last.Begun.Format("15:04:05"))
	line := strings.Join(append(first, newest), ", ") + fmt.Sprintf("; %s each, written in %s", text.Bytes(s.Bytes), about(time.Duration(s.Write)))
	if s.Stall != nil {
		line += ", training stands still for " + about(time.Duration(*s.Stall))
	}
	return line
}

// name names a checkpoint by its step. If the step is not known, it uses the path.
func name(r job.SaveReport) string {
	if r.Step >= 0 {
		return fmt.Sprintf("step %d", r.Step)
	}
	return baseName(r.Path)
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
