package finish

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/job"
)

// Event is what is known of a sign of failure.
type Event struct {
	Category job.Category
	Verdict  bool // the system that runs the job reports it
	Stopped  bool // it is the end of a process that was asked to end
	Farewell bool // it is about clearing up after the work, such as closing connections
	Ended    bool // a launcher reports afterwards that a rank failed
}

// Past reports whether an event does not count as the failure of the job. That is so if the job finished its planned
// work after the event, or if the event happened while the finished job was clearing up.
func (j *Job) Past(file string, number, owner int, e Event) bool {
	switch e.Category {
	case job.ModelDiverged, job.Straggler, job.StoppedEarly:
		return false
	case job.Killed, job.Cancelled:
		asked := e.Stopped || e.Category == job.Cancelled
		if j.LeaderLeft(file, number) || asked && (j.Declared(file, number) || e.Farewell && j.Over(file, number)) {
			return true
		}
	// The event may be one of the host that did not affect the job.
	case job.GPUHardware, job.HostLost, job.NetworkError, job.StorageError:
		if e.Verdict && j.Counts(file) && (j.Over(file, number) || j.EndsWell(file, number, owner, 2*several)) {
			return true
		}
	}
	if !e.Verdict && j.Told(file) {
		return true
	}
	return !e.Ended && (j.Reaches(file, number, owner) || e.Farewell && j.Over(file, number))
}

// Reaches reports whether a rank counted work before a line of a log and came to the end of the planned work after that
// line. If rank is -1, or if the rank counts no work, this must hold for all ranks that count work. Nothing may fail
// after that end, and no line of the log may be the result of a failed test.
func (j *Job) Reaches(file string, number, rank int) bool {
	l := j.files[file]
	if l == nil || len(l.plan.reached) == 0 {
		return false
	}
	ranks := []int{rank}
	if _, counts := l.plan.first[rank]; rank < 0 || !counts {
		ranks = ranks[:0]
		for r := range l.plan.first {
			ranks = append(ranks, r)
		}
	}
	last := 0
	for _, r := range ranks {
		at := l.plan.reached[r]
		if at <= number || l.plan.first[r] >= number {
			return false
		}
		last = max(last, at)
	}
	return len(ranks) > 0 && l.calm(last) && !slices.ContainsFunc(l.lines, func(o Line) bool { return len(o.Text) < maxLine && outlook.FailedTest(o.Text) })
}

// Over reports whether the work was done before a line of a log: one of the last lines before it says so, or all
// planned work was done before it. No line after it may count work or report a failure.
func (j *Job) Over(file string, number int) bool {
	l := j.files[file]
	if l == nil || !l.calm(number) || advances(l.after(number)) > 0 {
		return false
	}
	for _, at := range l.plan.reached {
		if rest := l.after(at); !l.plan.behind && at < number && advances(rest) < several {
			return true
		}
	}
	before, seen := l.lines[:len(l.lines)-len(l.after(number-1))], 0
	for i := len(before) - 1; i >= 0 && seen < several; i-- {
		switch b := before[i]; {
		case b.Mark&outlook.Epilogue != 0 && !outlook.OfScript(b.Text) && !alike(before[:i], b), good(b) && !l.plan.behind:
			return true
		case b.Mark&(outlook.Bad|outlook.Advance) != 0:
			return false
		case b.Mark&outlook.Aside == 0:
			seen++
		}
	}
	return false
}

// alike reports whether one of the lines is from the rank of l and differs from l only in numbers.
func alike(lines []Line, l Line) bool {
	f := form(l.Text)
	return slices.ContainsFunc(lines, func(o Line) bool { return o.Rank == l.Rank && len(o.Text) < maxLine && form(o.Text) == f })
}

// Counts reports whether a log has lines that count work: lines with the number of a step, an epoch or the like.
func (j *Job) Counts(file string) bool {
	l := j.files[file]
	return l != nil && (len(l.plan.first) > 0 || advances(l.lines) > 0)
}

// Told reports whether another file tells that the job came to a good end. Told considers only files that tell of no
// failure. If such a file does not count work, it is no output of the job, and one of its lines must say that the
// whole job succeeded. If it counts work, it must be the only other file. Its last word must say that a process ended
// with code 0 or that nothing failed, and must belong to no rank.
func (j *Job) Told(file string) bool {
	for name, l := range j.files {
		if name == file || l.failed >= 0 {
			continue
		}
		if j.Counts(name) {
			at := lastWord(l.lines)
			if at >= 0 && len(j.files) == 2 && l.lines[at].Rank < 0 && l.lines[at].Mark&outlook.Zero != 0 {
				return true
			}
			continue
		}
		for _, o := range l.lines {
			if whole := outlook.Done | outlook.All | outlook.Zero; o.Mark&whole == whole {
				return true
			}
		}
	}
	return false
}

// LeaderLeft reports whether, before a line of a log, the process that leads the job ended with code 0, and no work is
// counted after that.
func (j *Job) LeaderLeft(file string, number int) bool {
	l := j.files[file]
	if l == nil {
		return false
	}
	for i := len(l.lines) - len(l.after(number-1)) - 1; i >= 0 && l.lines[i].Mark&outlook.Advance == 0; i-- {
		if outlook.LeaderLeft(l.lines[i].Text) {
			return advances(l.after(number)) == 0
		}
	}
	return false
}

// Declared reports whether one of the lines just before a line says that the whole job succeeded, and no line after
// the given line counts work or reports a failure.
func (j *Job) Declared(file string, number int) bool {
	l := j.files[file]
	if l == nil || !l.calm(number) || advances(l.after(number)) > 0 {
		return false
	}
	before := l.lines[:len(l.lines)-len(l.after(number-1))]
	for i := len(before) - 1; i >= max(0, len(before)-2*several); i-- {
		switch m := before[i].Mark; {
		case m&outlook.Done != 0 && m&outlook.All != 0:
			return true
		case m&(outlook.Bad|outlook.Advance) != 0:
			return false
		}
	}
	return false
}

// done reports whether all planned work is done.
func (l *log) done() bool {
	last := 0
	for _, at := range l.plan.reached {
		last = max(last, at)
	}
	return last > 0 && !l.plan.behind && len(l.plan.reached) == len(l.plan.first) && l.calm(last)
}

// calm reports whether no line after the line with a number says that something ended badly.
func (l *log) calm(number int) bool {
	for _, o := range l.after(number) {
		if o.Mark&outlook.Bad != 0 || o.Sign && outlook.Fatal(o.Text) && !outlook.Farewell(o.Text) {
			return false
		}
	}
	return true
}
