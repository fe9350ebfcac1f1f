package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// gpuPlacer finds GPUs for a gang, waits for them where others have them, and
// holds them.
type gpuPlacer struct {
	run      string
	command  string
	hosts    []job.Host // with Devices; Busy only where no lease tells of it
	pretend  bool       // they are pretended: each has leases of its own
	want     topology.Want
	guessed  bool // nobody has said how many GPUs a rank needs
	patience job.Patience
	limit    time.Duration // how long the GPUs are needed at most; 0 is not known
	not      job.Excluded
	emit     func(job.Event)
	// again looks at the hosts anew, for what others than gangrun use; nil where
	// nothing can have changed.
	again func() []job.Host
}

// lookAgain is how often a gang that waits looks for what others use.
const lookAgain = 5 * time.Second

// place waits for a place and holds it. The Lease is lost with any of its GPUs.
func (p *gpuPlacer) place(ctx context.Context) (supervisor.Lease, error) {
	w, err := p.newWait()
	if err != nil {
		return supervisor.Lease{}, err
	}
	defer w.close()
	held, err := lease.Acquire(ctx, w.members, w.plan)
	if err != nil {
		var none *topology.NoPlacement
		if errors.As(err, &none) {
			hint := none.Hint
			if p.guessed {
				hint += "; ranks that need no GPU, or share those that they see, are started with --gpus-per-rank 0"
			}
			return supervisor.Lease{}, supervisor.NoPlacement{Text: none.Text, Hint: hint}
		}
		return supervisor.Lease{}, err
	}
	if p.pretend { // this machine has neither the CPUs nor the NICs
		for i := range w.choice.Placement.Ranks {
			w.choice.Placement.Ranks[i].CPUs = ""
		}
		for i := range w.choice.Placement.Hosts {
			w.choice.Placement.Hosts[i].NICs = nil
		}
	}
	held = slices.DeleteFunc(held, func(h *lease.Held) bool { return h == nil })
	watch, lost := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	for _, h := range held {
		go func() { // ends with the lease, which Release ends
			<-h.Done()
			lost(h.Err())
			done <- struct{}{}
		}()
	}
	return supervisor.Lease{
		Placement:   w.choice.Placement,
		Explanation: job.Explanation{Why: append(slices.Clone(w.choice.Why), fmt.Sprintf("level %s: %s", w.choice.Level, strings.Join(w.choice.Words(), "; ")))},
		Held:        watch,
		Release: func() {
			for _, h := range held {
				_ = h.Release() // its end frees them at the latest
			}
			for range held {
				<-done
			}
			lost(nil)
		},
	}, nil
}

// gpuWait is a gang that waits for its turn.
type gpuWait struct {
	p       *gpuPlacer
	since   time.Time
	user    string
	turns   []*lease.Turn
	members []lease.Member[*lease.Held]
	levels  []job.Locality // that the gang would fit on, the closest first
	choice  topology.Choice
	said    string
	looked  time.Time // when the hosts were last looked at
}

func (p *gpuPlacer) newWait() (*gpuWait, error) {
	w := &gpuWait{p: p, since: time.Now(), looked: time.Now()}
	if u, err := user.Current(); err == nil {
		w.user = u.Username
	}
	for _, h := range p.hosts {
		name := ""
		if p.pretend {
			name = h.Name
		}
		space, err := lease.Open(os.Getenv(lease.Env), name)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("leases of GPUs on %s: %w; set %s to a local directory of mode 1777, the same for all users", h.Name, err, lease.Env)
		}
		turn := space.Turn()
		w.turns = append(w.turns, turn)
		w.members = append(w.members, turn)
	}
	for _, level := range job.Localities() {
		want := p.want
		want.Locality = level
		if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: p.hosts}, p.not); err == nil || ever(err) {
			w.levels = append(w.levels, level)
		}
		if level == p.want.Locality {
			break
		}
	}
	return w, nil
}

// ever reports whether a gang that does not fit now would if no GPU were busy.
func ever(err error) bool {
	var none *topology.NoPlacement
	return errors.As(err, &none) && none.Ever
}

func (w *gpuWait) close() {
	for _, t := range w.turns {
		_ = t.Close() // its file is void with this process at the latest
	}
}

// level is the widest level that the gang takes after having waited for so long,
// and when it takes a wider one; 0 is never.
func (w *gpuWait) level(waited time.Duration) (level job.Locality, next time.Duration) {
	at := time.Duration(0)
	for i, l := range w.levels {
		patience, bounded := w.p.patience.For(l)
		if i == len(w.levels)-1 || !bounded {
			return l, 0
		}
		if at += patience; waited < at {
			return l, at - waited
		}
	}
	return w.p.want.Locality, 0
}

// plan says what to ask of each host: GPUs that may be had now and are close
// enough, or a ticket for those that the gang would have if nobody were in its
// way.
func (w *gpuWait) plan(states []*lease.Waiting) ([]lease.Request, error) {
	p := w.p
	if p.again != nil && time.Since(w.looked) >= lookAgain {
		p.hosts, w.looked = p.again(), time.Now()
	}
	want := p.want
	var next time.Duration
	want.Locality, next = w.level(time.Since(w.since))
	requests := make([]lease.Request, len(p.hosts))
	for i, h := range p.hosts {
		requests[i] = lease.Request{User: w.user, Command: p.command, Ticket: lease.Ticket{Run: p.run, Since: w.since, Devices: usable(h, p.not), Limit: p.limit}}
	}
	ideal, err := topology.PlaceGPUs(want, job.Inventory{Hosts: p.hosts}, p.not)
	if err != nil && !ever(err) {
		return nil, err // it will never fit
	}
	if err != nil { // a foreign process is in the way
		ideal, _ = topology.PlaceGPUs(want, job.Inventory{Hosts: idle(p.hosts)}, p.not)
	}
	w.ask(requests, ideal, false)
	if states == nil {
		return requests, nil
	}
	now := job.Inventory{Hosts: w.busy(states)}
	choice, err := topology.PlaceGPUs(want, now, p.not)
	if err != nil {
		w.tell(err, now, want.Locality, next)
		return requests, nil
	}
	w.choice = choice
	for i := range requests {
		requests[i].Count = 0
	}
	w.ask(requests, choice, true)
	return requests, nil
}

// ask writes into requests what a choice needs of each host.
func (w *gpuWait) ask(requests []lease.Request, choice topology.Choice, take bool) {
	for _, r := range choice.Placement.Ranks {
		i := slices.IndexFunc(w.p.hosts, func(h job.Host) bool { return h.Name == r.Host })
		requests[i].Count += len(r.Devices)
		if take {
			requests[i].Take = append(requests[i].Take, r.Devices...)
			requests[i].Ranks = append(requests[i].Ranks, r.Rank)
		}
	}
}

// busy returns the hosts with those GPUs marked that may not be taken now.
func (w *gpuWait) busy(states []*lease.Waiting) []job.Host {
	hosts := slices.Clone(w.p.hosts)
	for i, state := range states {
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		if state == nil {
			continue
		}
		for j := range hosts[i].Devices {
			d := &hosts[i].Devices[j]
			if d.Busy != "" || slices.Contains(state.Spare, d.UUID) {
				continue
			}
			d.Busy = "kept for a gang that waits longer"
			for _, l := range state.Leases {
				if l.Device == d.UUID && !l.Idle() {
					d.Busy = heldBy(l)
				}
			}
		}
	}
	return hosts
}

// tell says what is waited for, when that is news.
func (w *gpuWait) tell(why error, now job.Inventory, level job.Locality, next time.Duration) {
	var none *topology.NoPlacement
	if !errors.As(why, &none) {
		return
	}
	text := fmt.Sprintf("waiting for %s on one %s", plural(w.p.want.Ranks*w.p.want.GPUs, "GPU"), level)
	if level == job.LocalityAny {
		text = "waiting for " + plural(w.p.want.Ranks*w.p.want.GPUs, "GPU")
	}
	if way := inTheWay(none.Way); way != "" {
		text += ": " + way
	}
	if text == w.said || w.p.emit == nil {
		return
	}
	w.said = text
	wider := w.p.want
	if choice, err := topology.PlaceGPUs(wider, now, w.p.not); err == nil && next > 0 {
		text += fmt.Sprintf("; %s are free at level %s, which it takes in %s at the latest", plural(w.p.want.Ranks*w.p.want.GPUs, "GPU"), choice.Level, next.Round(time.Second))
	}
	w.p.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: text})
}

// inTheWay says of GPUs who has them, those of one host and holder together.
func inTheWay(way []topology.Blocker) string {
	type holder struct{ host, busy string }
	var order []holder
	gpus := map[holder][]string{}
	for _, b := range way {
		h := holder{b.Host, b.Busy}
		if gpus[h] == nil {
			order = append(order, h)
		}
		gpus[h] = append(gpus[h], b.Device)
	}
	var parts []string
	for _, h := range order[:min(len(order), 4)] {
		be := "is"
		if len(gpus[h]) > 1 {
			be = "are"
		}
		parts = append(parts, printable(fmt.Sprintf("%s of %s %s %s", strings.Join(gpus[h], " "), h.host, be, h.busy)))
	}
	if len(order) > 4 {
		parts = append(parts, fmt.Sprintf("and so on for %d more", len(order)-4))
	}
	return strings.Join(parts, ", ")
}

// usable lists the GPUs of a host that a gang could ever have.
func usable(h job.Host, not job.Excluded) []string {
	var uuids []string
	states, _ := gpuStates(h)
	for i, d := range h.Devices {
		if (states[i] == gpuFree || states[i] == gpuBusy) && !not.Device(h.Name, d) {
			uuids = append(uuids, d.UUID)
		}
	}
	return uuids
}

// idle returns hosts as they would be if nobody used their GPUs.
func idle(hosts []job.Host) []job.Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		for j := range hosts[i].Devices {
			hosts[i].Devices[j].Busy = ""
		}
	}
	return hosts
}
