package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/preflight/compare"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

const (
	mostRounds  = 6 // limits the number of other hosts to which a host measures its link
	mostRepeats = 2 // limits how often a measurement with a slow result is repeated
)

// Measure makes all hosts measure how fast they are. If the hosts are on several machines, they also measure
// how fast the links between them are. If a result is far slower than those of its peers, Measure repeats the
// measurement a few times, and the best result counts. Measure takes at most job.HealthLimit; it then returns
// the results so far, with a Speed with an Error for each host that has not answered. connected has the agents
// of the hosts. Simulated hosts are all on one machine, so only the first of them measures.
func Measure(ctx context.Context, connected []*agents.Agent, hosts []job.Host, ask job.Measure) ([]job.Speed, error) {
	m := measuring{ask: ask}
	for i, a := range connected {
		if !a.Link.Local || !slices.ContainsFunc(m.agents, func(o *agents.Agent) bool { return o.Link.Local }) {
			m.agents, m.hosts = append(m.agents, a), append(m.hosts, hosts[i])
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, job.HealthLimit, fmt.Errorf("not measured within %s", job.HealthLimit))
	defer cancel()
	err := m.all(limited)
	if ctx.Err() == nil && limited.Err() != nil {
		err = nil
	}
	return m.speeds, err
}

// measuring is the state of one call of Measure.
type measuring struct {
	ask    job.Measure
	agents []*agents.Agent
	hosts  []job.Host

	mu     sync.Mutex
	speeds []job.Speed
}

// all makes all measurements, and then repeats the slow ones.
func (m *measuring) all(ctx context.Context) error {
	if err := m.host(ctx, func(_ job.Host, k job.SpeedKind) bool { return !k.OfGPU() }); err != nil {
		return err
	}
	// Measurements of GPUs take long to start, and do not disturb measurements of links.
	var gpus sync.WaitGroup
	var gpuErr error
	gpus.Go(func() {
		gpuErr = m.host(ctx, func(h job.Host, k job.SpeedKind) bool { return k.OfGPU() && len(h.Devices) > 0 })
	})
	err := m.links(ctx, func(a, b string) bool { return true })
	gpus.Wait()
	if err = errors.Join(err, gpuErr); err != nil {
		return err
	}
	for range mostRepeats {
		slow := compare.SlowSpeeds(m.speeds)
		if len(slow) == 0 {
			return nil
		}
		if err := m.again(ctx, slow); err != nil {
			return err
		}
	}
	return nil
}

// again repeats the measurements that are in slow.
func (m *measuring) again(ctx context.Context, slow []compare.Slow) error {
	err := m.host(ctx, func(h job.Host, k job.SpeedKind) bool {
		return slices.ContainsFunc(slow, func(s compare.Slow) bool { return s.Kind == k && slices.Contains(s.Hosts, h.Name) })
	})
	return errors.Join(err, m.links(ctx, func(a, b string) bool {
		return slices.ContainsFunc(slow, func(s compare.Slow) bool {
			of := func(h string) bool { return slices.Contains(s.Hosts, h) }
			return s.Kind.OfLink() && (of(a) && of(b) || !s.Pair && (of(a) || of(b)))
		})
	}))
}

// add adds speeds. If a better value is already there, that value stays.
func (m *measuring) add(speeds ...job.Speed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speeds = compare.Faster(m.speeds, speeds)
}

// knows reports whether a host has a speed of a kind.
func (m *measuring) knows(host string, kind job.SpeedKind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.speeds, func(s job.Speed) bool { return s.Host == host && s.Kind == kind })
}

// host makes all hosts measure themselves at the same time. Each host measures the kinds for which wanted returns true.
func (m *measuring) host(ctx context.Context, wanted func(h job.Host, k job.SpeedKind) bool) error {
	return agents.Each(len(m.agents), func(i int) error {
		a, ask := m.agents[i], m.ask
		ask.Kinds = slices.DeleteFunc(slices.Clone(ask.Kinds), func(k job.SpeedKind) bool {
			return k.OfLink() || !wanted(m.hosts[i], k)
		})
		if len(ask.Kinds) == 0 {
			return nil
		}
		data, err := exact.Marshal(ask)
		if err != nil {
			return err
		}
		reply, err := a.Client.Measure(ctx, &wire.MeasureRequest{Measure: data, Spool: !a.Link.Local})
		if err != nil && ctx.Err() != nil {
			for _, k := range ask.Kinds {
				if m.knows(m.hosts[i].Name, k) {
					continue
				}
				m.add(job.Speed{Host: m.hosts[i].Name, Kind: k, Error: context.Cause(ctx).Error()})
			}
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("measure host %s: %w", m.hosts[i].Name, a.Failed(ctx, err))
		}
		var speeds []job.Speed
		err = exact.Unmarshal(reply.Speeds, &speeds)
		m.add(speeds...)
		return err
	})
}

// links makes the hosts measure the links for which wanted returns true. Each host measures one link at a
// time.
func (m *measuring) links(ctx context.Context, wanted func(a, b string) bool) error {
	if !slices.Contains(m.ask.Kinds, job.SpeedLink) || len(m.agents) < 2 {
		return nil
	}
	meeting, err := gather(ctx, m.agents, m.hosts, func(int) string { return "" })
	defer meeting.cancel()
	if err != nil {
		return err
	}
	for _, round := range rounds(len(m.agents)) {
		err := agents.Each(len(round), func(i int) error {
			from, to := round[i][0], round[i][1]
			if !wanted(m.hosts[from].Name, m.hosts[to].Name) {
				return nil
			}
			reply, err := meeting.ask(from, &wire.MeetRequest{Link: meeting.peers[to]})
			if err != nil && ctx.Err() != nil {
				m.add(job.Speed{Host: m.hosts[from].Name, Kind: job.SpeedLink, Of: m.hosts[to].Name, Error: context.Cause(ctx).Error()})
			}
			if err != nil {
				return meeting.failed(from, err)
			}
			var speeds []job.Speed
			err = exact.Unmarshal(reply.Speeds, &speeds)
			m.add(speeds...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return meeting.end()
}

// rounds returns at most mostRounds rounds of pairs of n hosts. In each round, a host is in one pair at most. No pair
// occurs twice.
func rounds(n int) (all [][][2]int) {
	m := n + n%2 // if n is odd, the host that is paired with m-1 has no partner
	for r := range min(m-1, mostRounds) {
		var round [][2]int
		for i := range m / 2 {
			// Host m-1 keeps its place, and the others move in a circle.
			a, b := (r+i)%(m-1), (r+m-1-i)%(m-1)
			if i == 0 {
				b = m - 1
			}
			if b < n && a < n {
				round = append(round, [2]int{min(a, b), max(a, b)})
			}
		}
		all = append(all, round)
	}
	return all
}
