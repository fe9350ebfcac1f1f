// Package hosts finds the hosts of a run: which hosts the job wants, how an agent is
// started on each, and which of them were reached.
package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/diagnose/refusal"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
)

// Found is the result of the search for the hosts of a run: the hosts that were reached, as their
// agents describe them, and the hosts that were not reached.
type Found struct {
	launcher *launcher.Launcher
	loopback int // how many simulated hosts share this machine's cores; 0 means none
	stop     context.CancelFunc
	done     chan struct{} // closed when the fields below are set

	hosts     []job.Host
	unreached []agents.Unreached
	noted     int           // how many of the hosts that were not reached have been reported
	err       error         // why the hosts could not be probed
	findings  []job.Finding // findings of the last look at the hosts' GPUs
	looked    time.Time     // time of the last look at the hosts' GPUs
	reported  map[job.Finding]bool
}

// Find starts to look for the hosts of a launcher in the background. The caller must close
// the result.
func Find(l *launcher.Launcher, spec job.Spec) *Found {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Found{launcher: l, loopback: spec.Loopback, stop: cancel, done: make(chan struct{}), reported: map[job.Finding]bool{}}
	go func() {
		defer close(f.done)
		f.hosts, f.unreached, f.err = l.Probe(ctx)
		if f.err == nil && spec.Loopback == 0 && spec.GPUs != 0 {
			f.Look(ctx, nil)
		}
	}()
	return f
}

// Close ends the search and waits for its goroutine.
func (f *Found) Close() {
	f.stop()
	<-f.done
}

// Wait waits for the end of the search. It returns the cause of ctx if that ends first. It returns nil if the search
// has ended, even if ctx has ended, too.
func (f *Found) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return nil
	default:
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Look makes the agents check again what uses their GPUs. It leaves out the hosts in skip.
func (f *Found) Look(ctx context.Context, skip []string) {
	hosts, findings, err := f.launcher.Devices(ctx, Except(f.hosts, skip))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		findings = append(findings, job.Finding{Severity: job.SeverityWarning, Text: err.Error()})
	}
	all := slices.Clone(f.hosts)
	for i, h := range all {
		if j := slices.IndexFunc(hosts, func(o job.Host) bool { return o.Name == h.Name }); j >= 0 {
			all[i] = hosts[j]
		}
	}
	f.hosts, f.findings, f.looked = all, findings, time.Now()
}

// Silent returns which of the given hosts do not answer, and why. It starts an agent on a
// host that has none. It leaves out hosts that were not reached in the beginning. Simulated
// hosts answer if this machine does.
func (f *Found) Silent(ctx context.Context, hosts []string) map[string]string {
	if f.loopback > 0 || f.Wait(ctx) != nil || ctx.Err() != nil {
		return nil
	}
	away := make([]map[string]error, len(f.hosts))
	var looking sync.WaitGroup
	for i, h := range f.hosts {
		if slices.Contains(hosts, h.Name) {
			looking.Go(func() {
				_, _, err := f.launcher.Devices(ctx, []job.Host{h})
				away[i] = agents.Unreachable(err)
			})
		}
	}
	looking.Wait()
	silent := map[string]string{}
	for _, errs := range away {
		for host, err := range errs {
			silent[host] = agents.Why(err).Error()
		}
	}
	return silent
}

// ReportUnreached reports each host that was not reached, or was lost, with the reason. It
// reports a host only once.
func (f *Found) ReportUnreached(emit func(job.Event)) {
	if left := f.unreached[f.noted:]; len(left) > 0 && len(f.hosts) > 0 { // without hosts, this is the run's error
		text, hint := UnreachedText(left)
		emit(job.Event{Kind: job.KindNote, Text: strings.TrimSuffix("not reached, and left out: "+text+"; "+hint, "; ")})
		f.noted = len(f.unreached)
	}
}

// Faults returns a finding for each host that was not reached.
func (f *Found) Faults() (findings []job.Finding) {
	for _, u := range f.unreached {
		text, hint := UnreachedText([]agents.Unreached{u})
		cause, refused := refusal.Cause(u.Err)
		if !refused {
			retry := job.RetryAgain
			if u.Lasting() {
				retry = job.RetryNever
			}
			cause = job.Cause{Category: job.HostLost, Signature: "not-reached", Rank: -1, Confidence: 1, Text: text, Hint: hint, Retry: retry}
		}
		cause.Host = u.Host
		findings = append(findings, job.Finding{Check: "hosts", Severity: job.SeverityError, Host: u.Host, Text: "not reached: " + text, Hint: hint, Cause: &cause})
	}
	return findings
}

// News returns the findings about the hosts' GPUs that News has not returned before. Hosts with the same finding share
// a line. If all is false, News leaves out findings that are only notes.
func (f *Found) News(all bool) (lines []string) {
	hosts := map[string][]string{}
	for _, found := range f.findings {
		if f.reported[found] || found.Severity == job.SeverityNote && !all {
			continue
		}
		f.reported[found] = true
		text := strings.TrimSuffix(found.Text+"; "+found.Hint, "; ")
		if _, ok := hosts[text]; !ok {
			lines = append(lines, text)
		}
		hosts[text] = append(hosts[text], found.Host)
	}
	if len(f.hosts) > 1 {
		for i, text := range lines {
			if names := strings.Join(hosts[text], ", "); names != "" {
				lines[i] = "on " + names + ": " + text
			}
		}
	}
	return lines
}

// Except returns hosts without those whose names are in names.
func Except(hosts []job.Host, names []string) []job.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h job.Host) bool { return slices.Contains(names, h.Name) })
}

// Inventory waits for the agents and returns the hosts that were reached. A host for which no slots
// are stated has as many slots as cores. Simulated hosts share the cores of this machine.
func (f *Found) Inventory(ctx context.Context) (job.Inventory, error) {
	if err := f.Wait(ctx); err != nil {
		return job.Inventory{}, err
	}
	if f.err != nil {
		var unfit interface { // a *network.Error or *network.DuplicateError
			error
			Hint() string
		}
		if errors.As(f.err, &unfit) {
			return job.Inventory{}, supervisor.NoPlacement{Text: unfit.Error(), Hint: unfit.Hint(), Never: true}
		}
		return job.Inventory{}, f.err
	}
	if len(f.hosts) == 0 {
		return job.Inventory{}, noHosts(f.unreached)
	}
	inventory := job.Inventory{}
	for _, h := range f.hosts {
		if !h.Hard {
			h.Slots = max(1, h.Cores/max(1, f.loopback))
		}
		inventory.Hosts = append(inventory.Hosts, h)
	}
	return inventory, nil
}

// noHosts returns the error of a run that can use none of its hosts. The hosts cannot be reached, or a file system on
// them fails.
func noHosts(unreached []agents.Unreached) error {
	text, hint := UnreachedText(unreached)
	for _, u := range unreached {
		if _, refused := refusal.Cause(u.Err); refused {
			return supervisor.StorageError{Err: errors.New("no host can be used: " + text)}
		}
	}
	return supervisor.NoPlacement{Text: "no host can be reached: " + text, Hint: hint, Never: permanent(unreached)}
}

// permanent reports whether it is useless to try again to reach these hosts.
func permanent(unreached []agents.Unreached) bool {
	return !slices.ContainsFunc(unreached, func(u agents.Unreached) bool { return !u.Lasting() })
}

// WithUnreached adds the hosts that were not reached to err, if err is a supervisor.NoPlacement. It
// also clears NoPlacement.Never if the gang may fit later: if one of these hosts or of the hosts in
// lost may come back, or if not everything about the hosts' GPUs could be found out.
func (f *Found) WithUnreached(err error, lost ...string) error {
	var none supervisor.NoPlacement
	if !errors.As(err, &none) || len(f.hosts) == 0 { // without any host, err names the hosts already
		return err
	}
	unclear := slices.ContainsFunc(f.findings, func(f job.Finding) bool { return f.Severity != job.SeverityNote })
	none.Never = none.Never && permanent(f.unreached) && len(lost) == 0 && !unclear
	if len(f.unreached) == 0 {
		return none
	}
	text, hint := UnreachedText(f.unreached)
	none.Text += "; not reached: " + text
	none.Hint = strings.Join(slices.DeleteFunc([]string{hint, none.Hint}, func(h string) bool { return h == "" }), "; or ")
	return none
}

// UnreachedText returns a text that says which hosts were not reached, and why. hint says what the user should do.
func UnreachedText(unreached []agents.Unreached) (why, hint string) {
	var texts, hints, unhinted []string
	for _, u := range unreached[:min(len(unreached), 4)] {
		one := agents.Why(u.Err).Error()
		if !strings.Contains(one, u.Host) {
			one = u.Host + ": " + one
		}
		texts = append(texts, one)
		hint := failure.Hint(u.Err)
		if cause, refused := refusal.Cause(u.Err); refused {
			texts[len(texts)-1] = string(cause.Category) + ": " + one
			hint = cmp.Or(hint, cause.Hint)
		}
		switch {
		case hint == "":
			unhinted = append(unhinted, u.Host)
		case !slices.Contains(hints, hint):
			hints = append(hints, hint)
		}
	}
	if len(unhinted) > 0 {
		hints = append(hints, "look at "+strings.Join(unhinted, ", ")+" and the network there, then run again")
	}
	why = strings.Join(texts, "; ")
	if more := len(unreached) - len(texts); more > 0 {
		why += fmt.Sprintf("; and so on for %s", text.Count(more, "more host"))
	}
	return why, strings.Join(hints, "; ")
}

// Drop removes the hosts that are unreachable according to err. It returns false if there are none.
func (f *Found) Drop(err error) bool {
	away := agents.Unreachable(err)
	for host, why := range away {
		f.hosts = slices.DeleteFunc(slices.Clone(f.hosts), func(h job.Host) bool { return h.Name == host })
		f.unreached = append(f.unreached, agents.Unreached{Host: host, Err: fmt.Errorf("lost in the preflight: %w", why)})
	}
	return len(away) > 0
}

// Unreached returns the hosts that were not reached.
func (f *Found) Unreached() []agents.Unreached { return f.unreached }

// SkipNotes prevents ReportUnreached from reporting the hosts that were found to be unreachable before this call.
func (f *Found) SkipNotes() { f.noted = len(f.unreached) }

// LookedAt returns the time of the last look at the hosts' GPUs.
func (f *Found) LookedAt() time.Time { return f.looked }
