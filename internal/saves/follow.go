package saves

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Found is a file or directory in a checkpoint directory that may be a checkpoint, or a part of a checkpoint.
type Found struct {
	Path string
	Step int64 // the step in its name; -1 if the name has none
	// Kind is equal for checkpoints of one job whose names differ only in their numbers.
	Kind  string
	Bytes int64
	Files int       // number of files below a directory; 1 for a file
	Time  time.Time // time of the last change
	Born  time.Time // when the file or directory was made; zero if that is not known
	// Unfinished is true if it has the name of a temporary file.
	Unfinished bool
}

// same reports whether f and o are the same file or directory, and it has not changed.
func (f Found) same(o Found) bool {
	return f.Path == o.Path && f.Bytes == o.Bytes && f.Files == o.Files && f.Time.Equal(o.Time)
}

// Checked is the result of the verification of one Found.
type Checked struct {
	Path   string
	Format string
	// Why is why it is not a good checkpoint; empty if it is good. Small is true if the only reason is its
	// size. Remark is what else the user should know about a good checkpoint.
	Why, Remark string
	Small       bool
}

const (
	// Quiet is how long a checkpoint must not have changed before an agent verifies it.
	Quiet       = 2 * time.Second
	slow        = 10 * time.Second // gangrun tells the user about a checkpoint that takes longer than this to write
	patience    = time.Minute      // without a change; then a checkpoint that is not complete counts as broken
	endPatience = 5 * time.Second  // the same after the end of the gang
	maxSaves    = 4096             // maximum number of checkpoints that are followed
	maxPast     = 32               // maximum number of good checkpoints that are remembered
)

// save is a checkpoint in the directory: all files and directories with the same step.
type save struct {
	key     string
	parts   []Found
	begun   time.Time
	changed time.Time // when a change was last seen
	// open is true from the first change of the checkpoint until the Follower knows whether it is good or
	// broken.
	open    bool
	told    bool // the user was told that it is being written
	checked bool // it was verified after its last change
	why     string
	small   bool
	report  job.SaveReport // the report, if it is good
	inPlace bool           // it was written over the checkpoint before it
}

// Follower follows the checkpoints of one directory.
type Follower struct {
	saves  map[string]*save
	looked time.Time // when the Follower last looked
	past   []past    // good checkpoints that this gang has written, in the order in which they were begun
	room   room
	late   bool // the user was told that a checkpoint is overdue
}

// past is a good checkpoint that the gang has written before.
type past struct {
	key, kind, format, name string
	begun, ended            time.Time
	bytes                   int64
	step                    int64
}

// apart reports whether files whose writing began at begun are a checkpoint of their own. Otherwise they belong
// to the checkpoint before, whose writing began at before and took the time took. Files with the same step are
// one checkpoint. So are files without a step (-1) that are written at the same time.
func apart(begun, before time.Time, took time.Duration, step, stepBefore int64) bool {
	if step >= 0 && stepBefore >= 0 {
		return step != stepBefore && begun.After(before)
	}
	return begun.Sub(before) >= max(Quiet, took)
}

// New returns a Follower of a directory. before is what was in the directory before the gang began.
func New(now time.Time, before []Found) *Follower {
	f := &Follower{saves: map[string]*save{}, looked: now, room: room{free: -1}}
	for key, parts := range grouped(before) {
		f.saves[key] = &save{key: key, parts: parts, begun: now, changed: now, checked: true}
	}
	return f
}

// grouped returns the files and directories by the checkpoint to which they belong.
func grouped(all []Found) map[string][]Found {
	groups := map[string][]Found{}
	for _, one := range all {
		key := one.Path
		if one.Step >= 0 && !one.Unfinished {
			key = fmt.Sprintf("%s/%d", filepath.Dir(one.Path), one.Step)
		}
		if groups[key] == nil && len(groups) == maxSaves {
			continue
		}
		groups[key] = append(groups[key], one)
	}
	for _, parts := range groups {
		slices.SortFunc(parts, func(a, b Found) int { return cmp.Compare(a.Path, b.Path) })
	}
	return groups
}

// Look is a look at a checkpoint directory.
type Look struct {
	Now time.Time
	// Noticed is when the first change since the last look was noticed. It is Now if nobody has waited for
	// changes.
	Noticed time.Time
	Found   []Found
	Free    int64 // free bytes on the file system; -1 if that is not known
}

// Look evaluates the next look at the directory. It returns what is new for the user.
func (f *Follower) Look(l Look) (told []job.SaveReport) {
	now, groups := l.Now, grouped(l.Found)
	for key, parts := range groups {
		f.see(l, key, parts)
	}
	for key := range f.saves {
		if groups[key] == nil {
			delete(f.saves, key)
		}
	}
	f.looked, f.room.free = now, l.Free
	for _, s := range f.sorted() {
		if _, ended := f.Span(s.key); s.open && !s.told && ended.Sub(s.begun) >= slow {
			s.told = true
			told = append(told, s.describe(job.SaveWriting, now))
		}
	}
	return slices.Concat(told, f.broken(now, patience), f.overdue(now), f.disk(now))
}

// broken returns reports about the checkpoints that are still not complete after they had enough time.
func (f *Follower) broken(now time.Time, least time.Duration) (told []job.SaveReport) {
	for _, s := range f.sorted() {
		if s.open && s.checked && f.given(now, s, least) {
			told = append(told, s.end(now))
		}
	}
	return told
}

// see records the present parts of one checkpoint.
func (f *Follower) see(l Look, key string, parts []Found) {
	s := f.saves[key]
	if s == nil {
		s = &save{key: key}
		f.saves[key] = s
	} else if slices.EqualFunc(s.parts, parts, Found.same) {
		return
	}
	if len(s.parts) > 0 && s.report.Good() {
		born := s.parts[0].Born
		s.inPlace = !born.IsZero() && born.Equal(parts[0].Born)
	}
	if !s.open {
		s.open, s.told, s.begun = true, false, f.began(l, parts)
	}
	s.parts, s.changed, s.checked, s.why, s.small = parts, l.Now, false, "", false
}

// began returns when the writing of a checkpoint began. That is the time at which the first of its parts was
// created after the last checkpoint had ended. If no part was created since then, it is the time at which the
// change was noticed. A file that was renamed keeps the time of its creation, which is when its writer began.
func (f *Follower) began(l Look, parts []Found) time.Time {
	begun := l.Noticed
	known := false
	for _, p := range parts {
		if p.Born.After(f.lastEnd()) && !p.Born.After(l.Now) && (!known || p.Born.Before(begun)) {
			begun, known = p.Born, true
		}
	}
	return begun
}

// lastEnd returns when this gang last wrote to a good checkpoint. The next checkpoint cannot begin before that,
// even if the clock of the file server differs.
func (f *Follower) lastEnd() time.Time {
	if len(f.past) == 0 {
		return f.looked.Add(-10 * time.Minute)
	}
	return f.past[len(f.past)-1].ended
}

// given reports whether s has had enough time to become complete: its files have not changed for a while, or a
// later checkpoint is complete.
func (f *Follower) given(now time.Time, s *save, least time.Duration) bool {
	if s.unfinished() || s.why == "" {
		return false
	}
	limit := least
	for _, p := range f.past {
		limit = max(limit, 3*p.ended.Sub(p.begun))
	}
	_, ended := f.Span(s.key)
	later := len(f.past) > 0 && !f.past[len(f.past)-1].begun.Before(ended)
	return later || now.Sub(s.changed) >= limit
}

// unfinished reports whether all parts have the name of a temporary file.
func (s *save) unfinished() bool {
	return !slices.ContainsFunc(s.parts, func(p Found) bool { return !p.Unfinished })
}

// Due returns the key and the parts of the newest checkpoint that the caller should verify now. It returns a
// checkpoint only if the last change that was seen in its files was at least minAge before now. The key is "" if there
// is no checkpoint to verify.
func (f *Follower) Due(now time.Time, minAge time.Duration) (key string, parts []Found) {
	for _, s := range slices.Backward(f.sorted()) {
		if s.open && !s.checked && !s.unfinished() && now.Sub(s.changed) >= minAge && !f.grows(now, s, minAge) {
			return s.key, s.parts
		}
	}
	return "", nil
}

// grows reports whether another part of the same step still has a temporary name, and has changed recently.
func (f *Follower) grows(now time.Time, s *save, minAge time.Duration) bool {
	of := s.parts[0]
	for _, u := range f.saves {
		if of.Step >= 0 && u.open && u.unfinished() && u.parts[0].Step == of.Step && filepath.Dir(u.parts[0].Path) == filepath.Dir(of.Path) && now.Sub(u.changed) < minAge {
			return true
		}
	}
	return false
}

// sorted returns the checkpoints in the order in which they were begun.
func (f *Follower) sorted() []*save {
	all := make([]*save, 0, len(f.saves))
	for _, s := range f.saves {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *save) int { return cmp.Or(a.begun.Compare(b.begun), cmp.Compare(a.key, b.key)) })
	return all
}

// Busy reports whether a checkpoint is being written or waits for its verification, so that the next look
// should come soon. A temporary file that its writer has left behind does not count.
func (f *Follower) Busy(now time.Time) bool {
	for _, s := range f.saves {
		if s.open && !s.checked && !(s.unfinished() && now.Sub(s.changed) >= patience) {
			return true
		}
	}
	return false
}

// Span returns when the writing of a checkpoint began, and when its last byte was written. key is a key that
// Due has returned.
func (f *Follower) Span(key string) (begun, ended time.Time) {
	s := f.saves[key]
	if s == nil {
		return begun, ended
	}
	return s.begun, s.begun.Add(time.Duration(s.describe(job.SaveComplete, s.changed).Write))
}

// Verified takes the results of the verification of the parts that Due has returned. It returns what is new for
// the user. It does nothing if the parts have changed since Due returned them.
func (f *Follower) Verified(now time.Time, key string, parts []Found, results []Checked) []job.SaveReport {
	s := f.saves[key]
	if s == nil || !s.open || !slices.EqualFunc(s.parts, parts, Found.same) {
		return nil
	}
	s.checked, s.why, s.small = true, "", false
	format, remark := "", ""
	for _, r := range results {
		if r.Why != "" && s.why == "" {
			s.why, s.small = named(r, len(parts)), r.Small
		}
		format, remark = cmp.Or(format, r.Format), cmp.Or(remark, r.Remark)
	}
	if s.why == "" {
		s.why = f.missing(s)
	}
	if s.why != "" && !s.small {
		return f.broken(now, patience)
	}
	s.open = false
	r := s.describe(job.SaveComplete, now)
	r.Format, r.Why = format, cmp.Or(s.why, remark)
	if smaller := f.smaller(s, format); s.small || smaller != "" {
		r.State, r.Why = job.SaveShrinking, cmp.Or(smaller, s.why)
	}
	f.add(now, s, r)
	return append([]job.SaveReport{r}, f.broken(now, patience)...)
}

// named returns why a part is not good. If there are several parts, it adds the name of the part.
func named(r Checked, parts int) string {
	if parts == 1 {
		return r.Why
	}
	return filepath.Base(r.Path) + ": " + r.Why
}

// missing returns which files a checkpoint lacks that the checkpoint before it has. It considers only kinds of
// which both checkpoints have several files, such as the shards of ranks.
func (f *Follower) missing(s *save) string {
	if len(f.past) == 0 {
		return ""
	}
	last := f.saves[f.past[len(f.past)-1].key]
	if last == nil || last == s {
		return ""
	}
	count := func(parts []Found) map[string]int {
		n := map[string]int{}
		for _, p := range parts {
			n[p.Kind]++
		}
		return n
	}
	had := count(last.parts)
	for kind, n := range count(s.parts) {
		if had[kind] > 1 && n < had[kind] {
			return fmt.Sprintf("it has %d files as %s, and the one before it has %d", n, filepath.Base(s.parts[0].Path), had[kind])
		}
	}
	return ""
}

// end stops waiting for a checkpoint that is not complete, and returns a report that it is broken.
func (s *save) end(now time.Time) job.SaveReport {
	s.open = false
	r := s.describe(job.SaveBroken, now)
	r.Why = s.why
	return r
}

// describe returns a report of the checkpoint.
func (s *save) describe(state job.SaveState, now time.Time) job.SaveReport {
	r := job.SaveReport{State: state, Begun: s.begun}
	r.Path, r.Step, r.Files = s.parts[0].Path, s.parts[0].Step, len(s.parts)
	for _, p := range s.parts {
		r.Bytes += p.Bytes
		if p.Time.After(r.Time) {
			r.Time = p.Time
		}
	}
	end := r.Time
	switch {
	case state == job.SaveWriting:
		end = now
	case end.Before(s.begun), end.After(s.changed): // the clock of the file server differs from that of this host
		end = s.changed
	}
	r.Write = job.Duration(end.Sub(s.begun))
	return r
}

// add remembers a good checkpoint.
func (f *Follower) add(now time.Time, s *save, r job.SaveReport) {
	s.report = r
	f.past = append(f.past, past{
		key: s.key, kind: s.parts[0].Kind, format: r.Format, name: filepath.Base(r.Path),
		begun: s.begun, ended: s.begun.Add(time.Duration(r.Write)), bytes: r.Bytes, step: r.Step,
	})
	// The newest checkpoints are verified first, so they are not added in order.
	slices.SortStableFunc(f.past, func(a, b past) int { return a.begun.Compare(b.begun) })
	f.past = f.past[max(0, len(f.past)-maxPast):]
	f.late = false
	f.room.added(now, s.inPlace)
}

// Close ends the Follower after the end of the gang. A checkpoint that is not complete then counts as broken,
// unless it was being written until just now. Before Close, the caller must verify everything that CloseDue
// returns.
func (f *Follower) Close(now time.Time) []job.SaveReport { return f.broken(now, endPatience) }

// CloseDue is like Due, for a gang that has ended. It does not wait until a checkpoint has not changed for a
// while, because nobody writes any more.
func (f *Follower) CloseDue(now time.Time) (key string, parts []Found) { return f.Due(now, 0) }
