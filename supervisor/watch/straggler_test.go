package watch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// day says how a simulated rank spends its time. The numbers are shares of the time.
type day struct {
	runs, waits, throttled, files float64
	steps                         float64 // a second
	cores                         int
	sending                       float64
	rate                          int64
	rtt                           time.Duration
	clock                         int           // MHz of its GPU
	stall                         float64       // memory stall of its host
	phase                         job.RankPhase // job.PhaseUnknown if it uses no MPI
}

// runners are simulated ranks, two on each host.
type runners struct {
	peers  *Peers
	now    time.Time
	random *rand.Rand
	ranks  []job.Pulse
	told   map[string]time.Duration // by host
	noise  float64                  // how much a share differs from one second to the next
}

const testWindow = 10 * time.Second

func newRunners(ranks int) *runners {
	r := &runners{peers: NewPeers(testWindow, ranks), now: begin, random: rand.New(rand.NewPCG(1, 2)), told: map[string]time.Duration{}, noise: 0.2}
	for number := range ranks {
		r.ranks = append(r.ranks, job.Pulse{Rank: number, Progress: &job.Progress{Epoch: -1}})
	}
	return r
}

func seconds(s float64) job.Duration { return job.Duration(s * float64(time.Second)) }

// spend lets n seconds pass, and returns the reports.
func (r *runners) spend(n int, of func(rank int) day) (found []job.StragglerReport) {
	for range n {
		r.now = r.now.Add(time.Second)
		hosts := map[string]*job.Pulses{}
		for i := range r.ranks {
			p, d, host := &r.ranks[i], of(i), fmt.Sprintf("h%d", i/2+1)
			vary := func(share float64) float64 { return share * (1 + r.noise*(2*r.random.Float64()-1)) }
			waits := vary(d.waits)
			p.Delays.Ran += seconds(d.runs)
			p.Delays.Waited += seconds(waits)
			p.Delays.Throttled += seconds(d.throttled)
			p.Delays.Sending += seconds(d.sending)
			p.Delays.Rate, p.Delays.RTT, p.Delays.Cores, p.Phase = d.rate, job.Duration(d.rtt), d.cores, d.phase
			p.Delays.File = false
			switch at := r.random.Float64(); {
			case at < d.files:
				p.Delays.File, p.State = true, job.ProcessDisk
			case at < d.files+d.runs+d.waits:
				p.State = job.ProcessRunning
			default:
				p.State = job.ProcessSleeping
			}
			if d.clock > 0 {
				p.GPU = &job.GPUPulse{Utilization: 100, SMClock: d.clock}
			}
			step := p.Progress.Count + int64(d.steps)
			if r.random.Float64() < d.steps-float64(int64(d.steps)) {
				step++
			}
			p.Progress = &job.Progress{Step: step, Count: step, Epoch: -1}
			if hosts[host] == nil {
				hosts[host] = &job.Pulses{Host: host, Time: r.now, Every: job.Duration(time.Second)}
			}
			r.told[host] += time.Duration(seconds(d.stall))
			hosts[host].MemoryStall = job.Duration(r.told[host])
			hosts[host].Ranks = append(hosts[host].Ranks, *p)
		}
		for i := range len(r.ranks) {
			if p := hosts[fmt.Sprintf("h%d", i+1)]; p != nil {
				found = append(found, r.peers.Add(*p)...)
			}
		}
	}
	return found
}

// Ranks of a healthy job.
var (
	// spins is a rank that waits for messages in a loop.
	spins = day{runs: 1, steps: 5, cores: 1, rate: 1e9, rtt: 100 * time.Microsecond, sending: 0.2}
	// dozes is a rank that sleeps while it waits.
	dozes = day{runs: 0.6, steps: 5, cores: 1, rate: 1e9, rtt: 100 * time.Microsecond, sending: 0.2}
)

// with returns a day that change has changed.
func (d day) with(change func(*day)) day {
	change(&d)
	return d
}

// only returns a function for spend: one rank spends the day odd, and the others spend the day others.
func only(rank int, odd, others day) func(int) day {
	return func(i int) day {
		if i == rank {
			return odd
		}
		return others
	}
}

func TestStragglersAreFound(t *testing.T) {
	crowd := day{runs: 0.05, waits: 0.9, steps: 5, cores: 2}
	for name, c := range map[string]struct {
		odd, others day
		reason      job.StragglerReason
		says        string
	}{
		"quota, others spin":                       {spins.with(func(d *day) { d.runs, d.waits, d.throttled = 0.65, 0.35, 0.35 }), spins, job.SlowQuota, "cpu.max"},
		"quota, others sleep":                      {dozes.with(func(d *day) { d.runs, d.waits, d.throttled = 0.65, 0.35, 0.35 }), dozes, job.SlowQuota, "cpu.max"},
		"quota, on a crowded machine":              {crowd.with(func(d *day) { d.runs, d.throttled = 0.03, 0.35 }), crowd, job.SlowQuota, "cpu.max"},
		"another process":                          {spins.with(func(d *day) { d.runs, d.waits = 0.6, 0.4 }), spins, job.SlowShared, "other processes"},
		"another process, where all wait a little": {spins.with(func(d *day) { d.runs, d.waits = 0.45, 0.55 }), spins.with(func(d *day) { d.runs, d.waits = 0.75, 0.25 }), job.SlowShared, "other processes"},
		"one core for two threads":                 {spins.with(func(d *day) { d.runs, d.waits = 1, 1 }), spins.with(func(d *day) { d.runs, d.cores = 2, 2 }), job.SlowCores, "fewer CPUs"},
		"disk, others spin":                        {spins.with(func(d *day) { d.runs, d.files = 0.6, 0.4 }), spins, job.SlowDisk, "files"},
		"disk, others sleep":                       {dozes.with(func(d *day) { d.files = 0.4 }), dozes.with(func(d *day) { d.files = 0.02 }), job.SlowDisk, "files"},
		"memory":                                   {spins.with(func(d *day) { d.runs, d.files, d.stall = 0.6, 0.4, 0.3 }), spins, job.SlowMemory, "memory"},
		"network":                                  {spins.with(func(d *day) { d.rate, d.sending = 4e6, 0.5 }), spins.with(func(d *day) { d.sending = 0.4 }), job.SlowNetwork, "connections"},
		"network, by its delay":                    {spins.with(func(d *day) { d.rtt, d.sending = 10*time.Millisecond, 0.5 }), spins.with(func(d *day) { d.sending = 0.4 }), job.SlowNetwork, "connections"},
		"throttled GPU":                            {spins.with(func(d *day) { d.clock = 900 }), spins.with(func(d *day) { d.clock = 1800 }), job.SlowThrottle, "clock"},
		"fewer steps":                              {spins.with(func(d *day) { d.steps = 3 }), spins, job.SlowUnknown, "fewer steps"},
		"fewer steps, by a quota":                  {dozes.with(func(d *day) { d.steps, d.waits, d.throttled = 3, 0.2, 0.2 }), dozes, job.SlowQuota, "cpu.max"},
		"more work":                                {spins, dozes, job.SlowWork, "the others wait"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunners(8)
			if found := r.spend(60, only(5, c.others, c.others)); len(found) > 0 {
				t.Fatalf("before: %+v", found)
			}
			found := r.spend(80, only(5, c.odd, c.others))
			if len(found) != 1 {
				t.Fatalf("found %+v, want one", found)
			}
			f := found[0]
			if f.Rank != 5 || f.Host != "h3" || f.Reason != c.reason || f.Over || f.Speed >= slowSpeed || !strings.Contains(f.Text, c.says) || strings.Contains(f.Text, "%!") {
				t.Errorf("found %+v, want %s", f, c.reason)
			}
			found = r.spend(60, only(5, c.others, c.others))
			if len(found) != 1 || !found[0].Over || found[0].Rank != 5 || found[0].Speed < calmSpeed {
				t.Errorf("after: %+v, want that it is over", found)
			}
		})
	}
}

func TestEqualRanksAreNoStragglers(t *testing.T) {
	for name, all := range map[string]func(int) day{
		"spin":                     only(0, spins, spins),
		"sleep":                    only(0, dozes, dozes),
		"all with a quota":         only(0, day{runs: 0.6, waits: 0.4, throttled: 0.4}, day{runs: 0.6, waits: 0.4, throttled: 0.4}),
		"all wait for a disk":      only(0, day{runs: 0.4, files: 0.5, steps: 2}, day{runs: 0.4, files: 0.5, steps: 2}),
		"all on a crowded machine": func(i int) day { return day{runs: 0.1 + 0.02*float64(i%3), waits: 0.88 - 0.02*float64(i%3), steps: 1} },
		"half are slow, and nobody knows which": func(i int) day {
			if i%2 == 0 {
				return spins.with(func(d *day) { d.runs, d.waits = 0.6, 0.4 })
			}
			return spins
		},
		"one is held up, and the others wait for another": func(i int) day {
			if i == 2 {
				return dozes.with(func(d *day) { d.runs, d.waits = 0.1, 0.3 })
			}
			return dozes
		},
		"only one prints": func(i int) day { return spins.with(func(d *day) { d.steps *= float64(1 - min(i, 1)) }) },
		"one writes a checkpoint, and no rank makes steps": only(0, day{runs: 0.1, files: 0.9}, day{runs: 1}),
		"in MPI_Init":                     only(0, day{runs: 0.5, waits: 0.5, phase: job.PhaseInit}, day{runs: 1, phase: job.PhaseInit}),
		"a long line that is hardly used": only(3, spins.with(func(d *day) { d.rate, d.sending = 4e6, 0.05 }), spins),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunners(8)
			r.noise = 0.5
			if found := r.spend(600, all); len(found) > 0 {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestStragglerForAWhileIsNone(t *testing.T) {
	r := newRunners(8)
	slow := spins.with(func(d *day) { d.runs, d.waits = 0.5, 0.5 })
	for range 20 {
		found := append(r.spend(30, only(1, spins, spins)), r.spend(8, only(1, slow, spins))...)
		if len(found) > 0 {
			t.Fatalf("found %+v", found)
		}
	}
}

func TestStragglerOfAnotherReasonIsReportedAgain(t *testing.T) {
	r := newRunners(8)
	r.spend(20, only(1, spins, spins))
	first := r.spend(60, only(1, spins.with(func(d *day) { d.runs, d.waits = 0.5, 0.5 }), spins))
	second := r.spend(60, only(1, spins.with(func(d *day) { d.runs, d.files = 0.5, 0.5 }), spins))
	if len(first) != 1 || len(second) != 1 || first[0].Reason != job.SlowShared || second[0].Reason != job.SlowDisk {
		t.Errorf("found %+v, then %+v", first, second)
	}
}

func TestSlowHost(t *testing.T) {
	r := newRunners(8)
	slow := func(i int) day {
		if i == 4 || i == 5 {
			return spins.with(func(d *day) { d.runs, d.waits = 0.5, 0.5 })
		}
		return spins
	}
	r.spend(20, only(0, spins, spins))
	found := r.spend(60, slow)
	if len(found) != 1 || found[0].Rank != -1 || found[0].Host != "h3" || !strings.HasPrefix(found[0].Text, "all ranks on h3 are slow; rank ") {
		t.Errorf("found %+v, want h3", found)
	}
	found = r.spend(60, only(0, spins, spins))
	if len(found) != 1 || found[0].Rank != -1 || !found[0].Over || found[0].Text != "no rank on h3 is slow any more" {
		t.Errorf("then %+v", found)
	}
}

func TestLastingStraggler(t *testing.T) {
	for name, c := range map[string]struct {
		odd  day
		want bool
	}{
		"quota":     {dozes.with(func(d *day) { d.runs, d.waits, d.throttled = 0.6, 0.4, 0.4 }), true},
		"more work": {spins, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunners(4)
			r.spend(20, only(0, dozes, dozes))
			r.spend(25, only(0, c.odd, dozes))
			if got := r.peers.Lasting(); got != nil {
				t.Errorf("after two windows: %+v", got)
			}
			r.spend(30, only(0, c.odd, dozes))
			if got := r.peers.Lasting(); (got != nil) != c.want {
				t.Errorf("after five windows: %+v", got)
			}
		})
	}
}

// TestGapIsNoWindow: a host is not slow because it was suspended or its pulses were lost.
func TestGapIsNoWindow(t *testing.T) {
	r := newRunners(8)
	r.spend(20, only(0, spins, spins))
	for range 20 {
		r.now = r.now.Add(time.Minute)
		if found := r.spend(9, only(1, spins.with(func(d *day) { d.runs, d.waits = 0.5, 0.5 }), spins)); len(found) > 0 {
			t.Fatalf("found %+v", found)
		}
	}
}

func TestNoPeers(t *testing.T) {
	slow := spins.with(func(d *day) { d.runs, d.waits = 0.3, 0.7 })
	two, off, ended := newRunners(2), newRunners(8), newRunners(8)
	off.peers = NewPeers(0, 8)
	ended.peers.Exit()
	for name, r := range map[string]*runners{"two ranks": two, "off": off, "a rank has ended": ended} {
		if found := r.spend(200, only(1, slow, spins)); len(found) > 0 || r.peers.Lasting() != nil {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
