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

// HostCoolDown is how long a host is excluded after it has made an attempt fail. In that time
// the host may be rebooted, or its network repaired. HostCoolDown is also the longest time that
// a gang waits for a host that does not answer, if the gang does not fit on the other hosts.
const HostCoolDown = 10 * time.Minute

// lookEvery is the time between two attempts to reach hosts that do not answer.
const lookEvery = 5 * time.Second

// exclusion is what a verdict has excluded from placements, and when.
type exclusion struct {
	job.Excluded
	since time.Time
}

// inForce returns what is excluded at the time now: GPUs for the rest of the run, hosts for
// HostCoolDown. over has the hosts whose HostCoolDown has passed.
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

// forget returns the exclusions without the hosts and GPUs in used, which are used again.
func forget(exclusions []exclusion, used job.Excluded) (left []exclusion) {
	for _, w := range exclusions {
		if w.Excluded = less(w.Excluded, used); !w.Empty() {
			left = append(left, w)
		}
	}
	return left
}

// goingBack decides for a gang that has no room without what is excluded, after it has waited for
// some time. used is what it uses again, and still has the hosts that stay excluded because they
// do not answer. vain is true if there is no reason to wait for those.
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

// excluded returns what is excluded now. It first tries to reach hosts whose HostCoolDown has
// passed, and hosts that were lost together with the one that the verdict blames. Those that do
// not answer are excluded too.
func (l *loop) excluded(ctx context.Context) job.Excluded {
	now := time.Now()
	out, over := inForce(l.exclusions, now)
	l.exclusions = forget(l.exclusions, job.Excluded{Hosts: over})
	suspect := union(job.Excluded{Hosts: over}, job.Excluded{Hosts: l.lost})
	l.lost = nil
	mute := l.silent(ctx, less(less(suspect, out), l.barred).Hosts)
	if len(mute) == 0 || ctx.Err() != nil {
		return out
	}
	again := job.Excluded{Hosts: slices.Sorted(maps.Keys(mute))}
	l.note("leaving out what does not answer: %s (%s)", strings.Join(again.Hosts, ", "), reasons(mute))
	l.exclusions = append(l.exclusions, exclusion{again, now})
	return union(out, again)
}

// silent returns the hosts that do not answer, each with the reason.
func (l *loop) silent(ctx context.Context, hosts []string) map[string]string {
	if l.Looker == nil || len(hosts) == 0 {
		return nil
	}
	return l.Looker.Silent(ctx, hosts)
}

// goBack places a gang that has no room without the excluded hosts and GPUs; err is the Placer's
// error. It uses those excluded hosts again that answer. If that is not enough, it waits until
// others answer.
func (l *loop) goBack(ctx context.Context, out job.Excluded, err error, emit func(job.Event)) (lease Lease, _ error) {
	out = less(out, l.barred)
	begun, reported := time.Now(), ""
	for {
		silent := l.silent(ctx, out.Hosts)
		if ctx.Err() != nil {
			return Lease{}, context.Cause(ctx)
		}
		used, still, vain := goingBack(out, silent, time.Since(begun))
		if !used.Empty() {
			text := "there is no place" + without(used) + "; placing the gang on it again"
			if reported != "" {
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
		if room := "no room" + without(still); room != reported {
			reported = room
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

// mute adds the hosts to the error for which the gang has waited without an answer.
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

// reasons returns in one text why hosts do not answer.
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

// pause waits for d. It returns false if ctx ends first.
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
