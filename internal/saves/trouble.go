package saves

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

const (
	leastLate  = time.Minute // a checkpoint is never overdue before this time
	lateGaps   = 8           // number of the newest gaps between checkpoints that are considered
	sizesOf    = 5           // number of earlier checkpoints of the same kind whose sizes are considered
	smallShare = 2           // a checkpoint is too small if it is smaller than their median divided by this number
)

// lateAfter returns how many times the longest of the known gaps a gap may last. The more gaps are known, the
// smaller it is, because a job may save once when it begins. It returns 0 if too few gaps are known.
func lateAfter(gaps int) time.Duration {
	switch gaps {
	case 0, 1:
		return 0
	case 2:
		return 6
	case 3:
		return 4
	}
	return 3
}

// gaps returns the newest times between two good checkpoints. Checkpoints that were written together, such as
// weights and optimizer states in separate files, count as one.
func (f *Follower) gaps() (all []time.Duration) {
	if len(f.past) == 0 {
		return nil
	}
	last := f.past[0]
	for _, p := range f.past[1:] {
		if apart(p.begun, last.begun, last.ended.Sub(last.begun), p.step, last.step) {
			all = append(all, p.begun.Sub(last.begun))
			last = p
		}
	}
	return all[max(0, len(all)-lateGaps):]
}

// overdue returns a report if there is no new good checkpoint for much longer than usual. It returns the report
// once, until there is a new good checkpoint.
func (f *Follower) overdue(now time.Time) []job.SaveReport {
	gaps := f.gaps()
	if f.late || lateAfter(len(gaps)) == 0 {
		return nil
	}
	last := f.past[len(f.past)-1]
	limit := max(leastLate, lateAfter(len(gaps))*slices.Max(gaps))
	if now.Sub(last.begun) < limit {
		return nil
	}
	f.late = true
	r := job.SaveReport{State: job.SaveOverdue, Begun: last.begun, Usual: job.Duration(median(gaps))}
	if s := f.saves[last.key]; s != nil {
		r.Checkpoint = s.report.Checkpoint
	} else {
		r.Path, r.Step, r.Bytes, r.Format = last.name, -1, last.bytes, last.format
	}
	r.Why = fmt.Sprintf("the last one was begun %s ago", text.Span(now.Sub(last.begun)))
	return []job.SaveReport{r}
}

// smaller returns a text if a checkpoint is much smaller than earlier ones of its kind and format.
func (f *Follower) smaller(s *save, format string) string {
	var earlier []past // the newest first
	for _, p := range slices.Backward(f.past) {
		if p.kind == s.parts[0].Kind && p.format == format && s.follows(p) && len(earlier) < sizesOf {
			earlier = append(earlier, p)
		}
	}
	var sizes []int64
	for _, p := range earlier {
		sizes = append(sizes, p.bytes)
	}
	bytes := int64(0)
	for _, p := range s.parts {
		bytes += p.Bytes
	}
	if len(sizes) == 0 || bytes >= median(sizes)/smallShare {
		return ""
	}
	i := slices.IndexFunc(earlier, func(p past) bool { return p.bytes >= median(sizes) })
	return fmt.Sprintf("it has %s, and %s had %s", text.Bytes(bytes), earlier[i].name, text.Bytes(earlier[i].bytes))
}

// follows reports whether a checkpoint has a later step than p. If one of them has no step, it reports whether
// the checkpoint was begun later.
func (s *save) follows(p past) bool {
	if step := s.parts[0].Step; step >= 0 && p.step >= 0 {
		return step > p.step
	}
	return s.begun.After(p.begun)
}

// removal is how long a job may take to remove old checkpoints after it has written one.
const removal = 10 * time.Second

// room describes the free space on the file system.
type room struct {
	free  int64     // bytes; -1 if not known
	since time.Time // when the first good checkpoint came that kept does not count; zero if kept counts all
	kept  int       // number of good checkpoints of this gang after old ones were removed
	grows bool      // the number was larger than after the checkpoint before
	// inPlace is true if the last checkpoint was written over the one before it, and so needed no additional
	// space.
	inPlace bool
	full    bool // the user was told that there is no room
}

// added records that there is another good checkpoint.
func (r *room) added(now time.Time, inPlace bool) {
	r.inPlace = inPlace
	if r.since.IsZero() {
		r.since = now
	}
}

// disk returns a report if the file system has no room for the next checkpoint. If the number of checkpoints
// grows, there must be room for two. It returns the report once, until there is room again.
func (f *Follower) disk(now time.Time) []job.SaveReport {
	r := &f.room
	// A checkpoint that is being written has already taken some of the free space.
	if r.since.IsZero() || now.Sub(r.since) < removal || f.Busy(now) {
		return nil
	}
	kept := 0
	for _, s := range f.saves {
		if s.report.Good() {
			kept++
		}
	}
	r.grows, r.kept, r.since = kept > r.kept, kept, time.Time{}
	last := f.past[len(f.past)-1]
	need := last.bytes // the job writes the next checkpoint before it removes an old one
	if r.grows {
		need += last.bytes
	}
	switch {
	case len(f.past) < 2, r.free < 0, r.inPlace: // it is not known if old ones stay, or space is no problem
		return nil
	case r.free >= need:
		r.full = false
		return nil
	case r.full:
		return nil
	}
	r.full = true
	report := job.SaveReport{State: job.SaveDisk, Begun: last.begun, Free: r.free}
	report.Path, report.Step, report.Bytes, report.Format = last.name, -1, last.bytes, last.format
	return []job.SaveReport{report}
}

// median returns the median of at least one number.
func median[T int64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
