package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// HostCoolDown is how long a host is excluded after it has made an attempt fail. It may have
// been rebooted or its network repaired by then. It is also the longest that a gang waits
// for a host that does not answer, if there is no room without it.
const HostCoolDown = 10 * time.Minute

// lookEvery is the time between two attempts to reach hosts that do not answer.
const lookEvery = 5 * time.Second

// exclusion is what a verdict has excluded from placements, and when.
type exclusion struct {
	job.Excluded
	since time.Time
}

// inForce returns what is excluded at a time: GPUs for the rest of the run, hosts for
// HostCoolDown. Over are the hosts whose time is over.
func inForce(exclusions []exclusion, now time.Time) (out job.Excluded, over []string) {
	for _, w := range exclusions {
		if now.Sub(w.since) >= HostCoolDown {
			over = append(over, w.Hosts...)
			w.Hosts = nil
		}
		out = union(out, w.Excluded)
	}
	over = slices.DeleteFunc(over, func(h string) bool { return slices.Contains(out.Hosts, h) })
	slices.Sort(over)
	return out, slices.Compact(over)
}

// forget returns the exclusions without what is used again.
func forget(exclusions []exclusion, used job.Excluded) (left []exclusion) {
	for _, w := range exclusions {
		if w.Excluded = less(w.Excluded, used); !w.Empty() {
			left = append(left, w)
		}
	}
	return left
}

// goingBack decides for a gang that has no room without what is excluded: used is what it
// uses again, still the hosts that stay excluded because they do not answer. vain says that
// waiting for these is of no use, after a wait of that length.
func goingBack(out job.Excluded, silent map[string]string, waited time.Duration) (used, still job.Excluded, vain bool) {
	still.Hosts = slices.DeleteFunc(slices.Clone(out.Hosts), func(h string) bool { _, mute := silent[h]; return !mute })
	return less(out, still), still, still.Empty() || waited >= HostCoolDown
}

// lostHosts returns the hosts that were lost with ranks of an attempt.
func lostHosts(o job.Outcome) (hosts []string) {
	for _, x := range o.Exits {
		if x.Status == job.Lost && !x.Stopped {
			hosts = append(hosts, x.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// excluded returns what is excluded now. It first tries to reach hosts whose HostCoolDown is
// over, and those that were lost beside the one that the verdict blames: a host that does
// not answer is excluded, too.
func (l *loop) excluded(ctx context.Context) job.Excluded {
	now := time.Now()
	out, over := inForce(l.exclusions, now)
	l.exclusions = forget(l.exclusions, job.Excluded{Hosts: over})
	doubted := union(job.Excluded{Hosts: over}, job.Excluded{Hosts: l.lost})
	l.lost = nil
	mute := l.silent(ctx, less(less(doubted, out), l.barred).Hosts)
	if len(mute) == 0 || ctx.Err() != nil {
		return out
	}
	again := job.Excluded{Hosts: slices.Sorted(maps.Keys(mute))}
	l.note("leaving out what does not answer: %s (%s)", strings.Join(again.Hosts, ", "), reasons(mute))
	l.exclusions = append(l.exclusions, exclusion{again, now})
	return union(out, again)
}

// silent returns which of these hosts do not answer, with the reasons.
func (l *loop) silent(ctx context.Context, hosts []string) map[string]string {
	if l.Looker == nil || len(hosts) == 0 {
		return nil
	}
	return l.Looker.Silent(ctx, hosts)
}

// goBack places a gang that has no room without what is excluded, as err says: on those of
// the excluded hosts that answer and, if that is not enough, on the others once they do.
func (l *loop) goBack(ctx context.Context, out job.Excluded, err error, emit func(job.Event)) (lease Lease, _ error) {
	out = less(out, l.barred)
	begun, told := time.Now(), ""
	for {
		silent := l.silent(ctx, out.Hosts)
		if ctx.Err() != nil {
			return Lease{}, context.Cause(ctx)
		}
		used, still, vain := goingBack(out, silent, time.Since(begun))
		if !used.Empty() {
			text := "there is no place" + without(used) + "; placing the gang on it again"
			if told != "" {
				l.state(job.StateWaiting, "")
				text = "there is an answer from " + strings.Join(used.Hosts, ", ") + " again: placing the gang there"
			}
			l.note("%s", text)
			l.exclusions = forget(l.exclusions, used)
			lease, err = l.Placer.Place(ctx, l.spec, union(still, l.barred), emit)
		}
		var none NoPlacement
		if ctx.Err() != nil || !errors.As(err, &none) {
			return lease, err
		}
		if vain {
			return Lease{}, none.mute(still, silent)
		}
		if room := "no room" + without(still); room != told {
			told = room
			which := "which does not answer: waiting for it"
			if len(still.Hosts) > 1 {
				which = "which do not answer: waiting for them"
			}
			l.state(job.StateWaiting, room+", "+which)
			emit(job.Event{Kind: job.KindNote, State: job.StateWaiting, Text: fmt.Sprintf("%s, %s, %g minutes at most (%s)", room, which, HostCoolDown.Minutes(), reasons(silent))})
		}
		out = still
		if !pause(ctx, lookEvery) {
			return Lease{}, context.Cause(ctx)
		}
	}
}

// mute adds to the error the hosts that the gang has waited for.
func (e NoPlacement) mute(still job.Excluded, silent map[string]string) NoPlacement {
	if still.Empty() {
		return e
	}
	names := strings.Join(still.Hosts, ", ")
	return NoPlacement{
		Text: fmt.Sprintf("%s; waited %g minutes for %s to answer (%s)", e.Text, HostCoolDown.Minutes(), names, reasons(silent)),
		Hint: fmt.Sprintf("look at %s and the network there; or %s", names, e.Hint),
	}
}

// reasons says why hosts do not answer.
func reasons(silent map[string]string) string {
	var words []string
	for _, host := range slices.Sorted(maps.Keys(silent)) {
		words = append(words, silent[host])
	}
	return strings.Join(words, "; ")
}

// less returns what a excludes without what b excludes.
func less(a, b job.Excluded) job.Excluded {
	but := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	}
	return job.Excluded{Hosts: but(a.Hosts, b.Hosts), Devices: but(a.Devices, b.Devices)}
}

// pause waits that long; false where ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
