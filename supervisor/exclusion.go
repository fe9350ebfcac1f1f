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
	"github.com/gangrun/gangrun/supervisor/retry"
)

// CoolDown is how long a host or GPU is excluded after it has made an attempt fail. In that time, somebody may
// reboot the host or repair its network. CoolDown is also the longest time for which a gang waits for hosts
// that cannot be used, if it does not fit on the other hosts.
const CoolDown = 10 * time.Minute

// lookEvery is the time between two looks at hosts that cannot be used.
const lookEvery = 5 * time.Second

// exclusion has the hosts and GPUs that a verdict has excluded from placements, and the time of the verdict.
type exclusion struct {
	job.Excluded
	since time.Time
}

// inForce returns what is excluded at the time now. over has the hosts and GPUs whose CoolDown
// has passed.
func inForce(exclusions []exclusion, now time.Time) (out, over job.Excluded) {
	for _, w := range exclusions {
		if now.Sub(w.since) >= CoolDown {
			over = union(over, w.Excluded)
		} else {
			out = union(out, w.Excluded)
		}
	}
	return out, less(over, out)
}

// forget returns the exclusions without the hosts and GPUs in used, which the run may use again.
func forget(exclusions []exclusion, used job.Excluded) (left []exclusion) {
	for _, w := range exclusions {
		if w.Excluded = less(w.Excluded, used); !w.Empty() {
			left = append(left, w)
		}
	}
	return left
}

// goingBack decides which excluded hosts and GPUs a gang uses again that does not fit on the others. waited is
// how long the gang has waited. used is what the gang uses again. still has the hosts that stay excluded
// because they cannot be used. vain is true if there is no reason to wait for these hosts.
func goingBack(out job.Excluded, unfit map[string]string, waited time.Duration) (used, still job.Excluded, vain bool) {
	still.Hosts = slices.DeleteFunc(slices.Clone(out.Hosts), func(h string) bool { _, bad := unfit[h]; return !bad })
	return less(out, still), still, still.Empty() || waited >= CoolDown
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

// excluded returns the hosts and GPUs that are excluded now. It first checks the hosts whose CoolDown has
// passed, and the hosts that were lost together with the one that the verdict blames. Hosts that fail this
// check are excluded, too. The Placer checks the GPUs whose CoolDown has passed: it uses none that its driver
// calls faulty.
func (l *loop) excluded(ctx context.Context) job.Excluded {
	now := time.Now()
	out, over := inForce(l.avoid.exclusions, now)
	l.avoid.exclusions = forget(l.avoid.exclusions, over)
	suspect := union(over, job.Excluded{Hosts: l.avoid.lost})
	l.avoid.lost = nil
	unfit := l.unfit(ctx, less(less(suspect, out), l.avoid.barred).Hosts)
	if ctx.Err() != nil {
		return out
	}
	again := job.Excluded{Hosts: slices.Sorted(maps.Keys(unfit))}
	if back := less(less(over, again), l.avoid.barred); !back.Empty() {
		l.note("%g minutes have passed%s: the gang may use it again", CoolDown.Minutes(), retry.Without(back))
	}
	if again.Empty() {
		return out
	}
	l.note("leaving out what cannot be used: %s (%s)", strings.Join(again.Hosts, ", "), reasons(unfit))
	l.avoid.exclusions = append(l.avoid.exclusions, exclusion{again, now})
	return union(out, again)
}

// unfit returns the hosts that cannot be used, each with the reason.
func (l *loop) unfit(ctx context.Context, hosts []string) map[string]string {
	if l.Looker == nil || len(hosts) == 0 {
		return nil
	}
	return l.Looker.Unfit(ctx, hosts)
}

// goBack places a gang that does not fit without the excluded hosts and GPUs. err is the error of the Placer.
// goBack uses those of the excluded hosts that pass the checks. If that is not enough, it waits until more
// hosts do.
func (l *loop) goBack(ctx context.Context, out job.Excluded, err error, emit func(job.Event)) (lease Lease, _ error) {
	out = less(out, l.avoid.barred)
	begun, reported := time.Now(), ""
	for {
		unfit := l.unfit(ctx, out.Hosts)
		if ctx.Err() != nil {
			return Lease{}, context.Cause(ctx)
		}
		used, still, vain := goingBack(out, unfit, time.Since(begun))
		if !used.Empty() {
			text := "there is no place" + retry.Without(used) + "; placing the gang on it again"
			if reported != "" {
				l.state(job.StateWaiting, "")
				text = strings.Join(used.Hosts, ", ") + " can be used again: placing the gang there"
			}
			l.note("%s", text)
			l.avoid.exclusions = forget(l.avoid.exclusions, used)
			lease, err = l.Placer.Place(ctx, l.spec, union(still, l.avoid.barred), emit)
		}
		var none NoPlacement
		if ctx.Err() != nil || !errors.As(err, &none) {
			return lease, err
		}
		if vain {
			return Lease{}, none.inVain(still, unfit)
		}
		if room := "no room" + retry.Without(still); room != reported {
			reported = room
			which := "which cannot be used yet: waiting for it"
			if len(still.Hosts) > 1 {
				which = "which cannot be used yet: waiting for them"
			}
			l.state(job.StateWaiting, room+", "+which)
			emit(job.Event{Kind: job.KindNote, State: job.StateWaiting, Text: fmt.Sprintf("%s, %s, %g minutes at most (%s)", room, which, CoolDown.Minutes(), reasons(unfit))})
		}
		out = still
		if !pause(ctx, lookEvery) {
			return Lease{}, context.Cause(ctx)
		}
	}
}

// inVain adds to the error the hosts for which the gang has waited in vain.
func (e NoPlacement) inVain(still job.Excluded, unfit map[string]string) NoPlacement {
	if still.Empty() {
		return e
	}
	names := strings.Join(still.Hosts, ", ")
	return NoPlacement{
		Text: fmt.Sprintf("%s; waited %g minutes for %s (%s)", e.Text, CoolDown.Minutes(), names, reasons(unfit)),
		Hint: fmt.Sprintf("look at %s and the network there; or %s", names, e.Hint),
	}
}

// reasons joins the reasons why hosts cannot be used.
func reasons(unfit map[string]string) string {
	var words []string
	for _, host := range slices.Sorted(maps.Keys(unfit)) {
		words = append(words, unfit[host])
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
