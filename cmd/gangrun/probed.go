package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
)

// probed are the hosts of a run, as the agents have found them that were started
// there.
type probed struct {
	launcher *launcher.Launcher
	loopback int // how many hosts share this machine's cores; 0 is none
	stop     context.CancelFunc
	done     chan struct{} // closed when what follows is set

	hosts     []job.Host
	unreached []launcher.Unreached
	noted     int           // of those that were not reached, how many are told of
	err       error         // why they could not be probed
	findings  []job.Finding // about their GPUs, of the last look
	looked    time.Time     // when their GPUs were looked at
	told      map[job.Finding]bool
}

// startProbe probes the hosts of a launcher in the background, until close.
func startProbe(l *launcher.Launcher, spec job.Spec) *probed {
	ctx, cancel := context.WithCancel(context.Background())
	p := &probed{launcher: l, loopback: spec.Loopback, stop: cancel, done: make(chan struct{}), told: map[job.Finding]bool{}}
	go func() {
		defer close(p.done)
		p.hosts, p.unreached, p.err = l.Probe(ctx)
		if p.err == nil && spec.Loopback == 0 && spec.GPUs != 0 {
			p.look(ctx, nil)
		}
	}()
	return p
}

// close ends the probe, if it has not ended.
func (p *probed) close() {
	p.stop()
	<-p.done
}

// wait waits for the end of the probe, or of ctx, which is the error.
func (p *probed) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look has the agents find out what the GPUs of all hosts but some are used for.
func (p *probed) look(ctx context.Context, but []string) {
	hosts, findings, err := p.launcher.Devices(ctx, without(p.hosts, but))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		findings = append(findings, job.Finding{Severity: job.SeverityWarning, Text: err.Error()})
	}
	all := slices.Clone(p.hosts)
	for i, h := range all {
		if j := slices.IndexFunc(hosts, func(o job.Host) bool { return o.Name == h.Name }); j >= 0 {
			all[i] = hosts[j]
		}
	}
	p.hosts, p.findings, p.looked = all, findings, time.Now()
}

// silent looks which of some hosts do not answer, and why; an agent is started where
// there is none. Those that were not reached at first are none of the inventory.
func (p *probed) silent(ctx context.Context, hosts []string) map[string]string {
	if p.wait(ctx) != nil {
		return nil
	}
	away := make([]map[string]error, len(p.hosts))
	var looking sync.WaitGroup
	for i, h := range p.hosts {
		if slices.Contains(hosts, h.Name) {
			looking.Go(func() {
				_, _, err := p.launcher.Devices(ctx, []job.Host{h})
				away[i] = launcher.Unreachable(err)
			})
		}
	}
	looking.Wait()
	silent := map[string]string{}
	for _, errs := range away {
		for host, err := range errs {
			silent[host] = strings.TrimPrefix(err.Error(), "start the agent on "+host+": ")
		}
	}
	return silent
}

// absent notes which hosts were not reached, or are not any more, and why: each once.
func (p *probed) absent(emit func(job.Event)) {
	if left := p.unreached[p.noted:]; len(left) > 0 && len(p.hosts) > 0 { // else the run ends, and says it
		text, hint := notReached(left)
		emit(job.Event{Kind: job.KindNote, Text: strings.TrimSuffix("not reached, and left out: "+text+"; "+hint, "; ")})
		p.noted = len(p.unreached)
	}
}

// faults are the hosts that were not reached, where each was to be.
func (p *probed) faults() (findings []job.Finding) {
	for _, u := range p.unreached {
		text, hint := notReached([]launcher.Unreached{u})
		cause, refused := diagnose.Refusal(u.Err)
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

// news returns what nobody has been told of that was found about the hosts' GPUs: a
// line for all hosts that it is true of. Mere notes are none unless all is wanted.
func (p *probed) news(all bool) (lines []string) {
	hosts := map[string][]string{}
	for _, f := range p.findings {
		if p.told[f] || f.Severity == job.SeverityNote && !all {
			continue
		}
		p.told[f] = true
		text := strings.TrimSuffix(f.Text+"; "+f.Hint, "; ")
		if _, ok := hosts[text]; !ok {
			lines = append(lines, text)
		}
		hosts[text] = append(hosts[text], f.Host)
	}
	if len(p.hosts) > 1 {
		for i, text := range lines {
			if names := strings.Join(hosts[text], ", "); names != "" {
				lines[i] = "on " + names + ": " + text
			}
		}
	}
	return lines
}

// without returns the hosts but some.
func without(hosts []job.Host, but []string) []job.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h job.Host) bool { return slices.Contains(but, h.Name) })
}

// inventory waits for the agents. Slots are a machine's cores; pretended hosts
// share them.
func (p *probed) inventory(ctx context.Context) (job.Inventory, error) {
	if err := p.wait(ctx); err != nil {
		return job.Inventory{}, err
	}
	if p.err != nil {
		var unfit interface { // a *launcher.NetworkError or *launcher.TwiceError
			error
			Hint() string
		}
		if errors.As(p.err, &unfit) {
			return job.Inventory{}, supervisor.NoPlacement{Text: unfit.Error(), Hint: unfit.Hint(), Never: true}
		}
		return job.Inventory{}, p.err
	}
	if len(p.hosts) == 0 {
		return job.Inventory{}, noHosts(p.unreached)
	}
	inventory := job.Inventory{}
	for _, h := range p.hosts {
		if !h.Hard {
			h.Slots = max(1, h.Cores/max(1, p.loopback))
		}
		inventory.Hosts = append(inventory.Hosts, h)
	}
	return inventory, nil
}

// noHosts is the end of a run none of whose hosts can be reached, or used because a file
// system there is full.
func noHosts(unreached []launcher.Unreached) error {
	text, hint := notReached(unreached)
	for _, u := range unreached {
		if _, refused := diagnose.Refusal(u.Err); refused {
			return supervisor.StorageError{Err: errors.New("no host can be used: " + text)}
		}
	}
	return supervisor.NoPlacement{Text: "no host can be reached: " + text, Hint: hint, Never: lasting(unreached)}
}

// lasting reports whether none of these hosts will be reached at another time either.
func lasting(unreached []launcher.Unreached) bool {
	return !slices.ContainsFunc(unreached, func(u launcher.Unreached) bool { return !u.Lasting() })
}

// without adds to the error of a gang that does not fit which hosts it has to do
// without. It may fit another time where one of them may be there then, as those that
// were lost meanwhile, or where more may be known of the hosts' GPUs.
func (p *probed) without(err error, lost ...string) error {
	var none supervisor.NoPlacement
	if !errors.As(err, &none) || len(p.hosts) == 0 { // or said already
		return err
	}
	unclear := slices.ContainsFunc(p.findings, func(f job.Finding) bool { return f.Severity != job.SeverityNote })
	none.Never = none.Never && lasting(p.unreached) && len(lost) == 0 && !unclear
	if len(p.unreached) == 0 {
		return none
	}
	text, hint := notReached(p.unreached)
	none.Text += "; not reached: " + text
	none.Hint = strings.Join(slices.DeleteFunc([]string{hint, none.Hint}, func(h string) bool { return h == "" }), "; or ")
	return none
}

// notReached says which hosts were not reached and why, and what to do.
func notReached(unreached []launcher.Unreached) (why, hint string) {
	var texts, hints, unhinted []string
	for _, u := range unreached[:min(len(unreached), 4)] {
		one := strings.TrimPrefix(u.Err.Error(), "start the agent on "+u.Host+": ")
		if !strings.Contains(one, u.Host) {
			one = u.Host + ": " + one
		}
		texts = append(texts, one)
		hint := failure.Hint(u.Err)
		if cause, refused := diagnose.Refusal(u.Err); refused {
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

// forsake leaves out the hosts that an error tells of; false where it tells of none.
func (p *probed) forsake(err error) bool {
	away := launcher.Unreachable(err)
	for host, why := range away {
		p.hosts = slices.DeleteFunc(slices.Clone(p.hosts), func(h job.Host) bool { return h.Name == host })
		p.unreached = append(p.unreached, launcher.Unreached{Host: host, Err: fmt.Errorf("lost in the preflight: %w", why)})
	}
	return len(away) > 0
}
