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

// HostCoolDown is how long a host is left out that has cost an attempt: one that
// was started anew, or whose network is mended, may be used again then. A gang that
// has no room without a host that does not answer waits for it as long at most.
const HostCoolDown = 10 * time.Minute

// lookEvery is how long after a look at hosts that do not answer the next one comes.
const lookEvery = 5 * time.Second

// wish is what a verdict wants to do without.
type wish struct {
	job.Excluded
	since time.Time
}

// wanted returns what is to be done without at a time: GPUs for good, hosts for their
// cool-down; and the hosts for which that is over.
func wanted(wished []wish, now time.Time) (out job.Excluded, over []string) {
	for _, w := range wished {
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

// forget returns the wishes but those to do without what is used again.
func forget(wished []wish, used job.Excluded) (left []wish) {
	for _, w := range wished {
		if w.Excluded = less(w.Excluded, used); !w.Empty() {
			left = append(left, w)
		}
	}
	return left
}

// goingBack says what a gang that has no room without something uses of it again, and
// which hosts it still does without, since they are silent; and whether to wait for
// these is in vain, after so long a wait.
func goingBack(out job.Excluded, silent map[string]string, waited time.Duration) (used, still job.Excluded, vain bool) {
	still.Hosts = slices.DeleteFunc(slices.Clone(out.Hosts), func(h string) bool { _, mute := silent[h]; return !mute })
	return less(out, still), still, still.Empty() || waited >= HostCoolDown
}

// lostHosts are those with which an attempt has lost ranks.
func lostHosts(o job.Outcome) (hosts []string) {
	for _, x := range o.Exits {
		if x.Status == job.Lost && !x.Stopped {
			hosts = append(hosts, x.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// wishes returns what is to be done without now. A host whose cool-down is over, or that
// was lost beside the one that is blamed, is looked at first: one that does not answer is
// left out as well.
func (l *loop) wishes(ctx context.Context) job.Excluded {
	now := time.Now()
	out, over := wanted(l.wished, now)
	l.wished = forget(l.wished, job.Excluded{Hosts: over})
	doubted := union(job.Excluded{Hosts: over}, job.Excluded{Hosts: l.lost})
	l.lost = nil
	mute := l.silent(ctx, less(less(doubted, out), l.barred).Hosts)
	if len(mute) == 0 || ctx.Err() != nil {
		return out
	}
	again := job.Excluded{Hosts: slices.Sorted(maps.Keys(mute))}
	l.note("leaving out what does not answer: %s (%s)", strings.Join(again.Hosts, ", "), reasons(mute))
	l.wished = append(l.wished, wish{again, now})
	return union(out, again)
}

// silent looks which of some hosts do not answer.
func (l *loop) silent(ctx context.Context, hosts []string) map[string]string {
	if l.Looker == nil || len(hosts) == 0 {
		return nil
	}
	return l.Looker.Silent(ctx, hosts)
}

// goBack places a gang that has no room without something, which err says: on what
// answers of it, and where that is not enough on the hosts that do not, once they do.
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
			l.wished = forget(l.wished, used)
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

// mute adds to what is missing the hosts that were waited for.
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

// less returns what a excludes and b does not.
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
