package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testseed"
)

// simulated is a gang with a process of its own. It takes some GPUs of each of its hosts, marks them, keeps
// them for a while, and ends.
type simulated struct {
	Run     string
	Age     int // seconds before epoch at which the gang began to wait
	Want    map[string]int
	GPUs    int // number of GPUs of each host
	Either  int // if it is not 0, the gang wants this number of GPUs on any one host instead of Want
	Keep    time.Duration
	Limit   time.Duration
	Markers string // directory of the mark files, of which no two may have the same name
	Seed    uint64
}

func (g simulated) run(ctx context.Context, dir string) error {
	random := rand.New(rand.NewPCG(g.Seed, 1))
	var members []Member[*Held]
	var hosts []string
	for host := range g.Want {
		s, err := Open(dir, host)
		if err != nil {
			return err
		}
		turn := s.Turn()
		defer turn.Close()
		members, hosts = append(members, turn), append(hosts, host)
	}
	grants, err := Acquire(ctx, members, func(states []*Waiting) ([]Request, time.Time, error) {
		if g.Either > 0 {
			return g.either(states, hosts, random), time.Time{}, nil
		}
		requests := make([]Request, len(hosts))
		fits := states != nil
		for i, host := range hosts {
			devices := gpus(g.GPUs)
			random.Shuffle(len(devices), func(a, b int) { devices[a], devices[b] = devices[b], devices[a] })
			requests[i] = req(g.Run, g.Age, devices, g.Want[host])
			requests[i].Limit = g.Limit
			if fits = fits && len(states[i].Spare) >= g.Want[host]; fits {
				requests[i].Take = states[i].Spare[:g.Want[host]]
			}
		}
		if !fits {
			for i := range requests {
				requests[i].Take = nil
			}
		}
		for i := range requests {
			for j := range requests {
				if states != nil && j != i {
					requests[i].NotBefore = later(requests[i].NotBefore, Earliest(requests[j].Least, states[j]))
				}
			}
		}
		return requests, time.Time{}, nil
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := m.(*Turn).Close(); err != nil {
			return err
		}
	}
	var marked []string
	for i, held := range grants {
		if held == nil {
			continue
		}
		want := g.Want[hosts[i]]
		if g.Either > 0 {
			want = g.Either
		}
		if len(held.Devices()) != want {
			return fmt.Errorf("%s got %v of %s", g.Run, held.Devices(), hosts[i])
		}
		for _, d := range held.Devices() {
			path := filepath.Join(g.Markers, hosts[i]+"."+d)
			if err := mark(path); err != nil {
				return err
			}
			marked = append(marked, path)
		}
	}
	fmt.Println("held")
	if err := sleep(ctx, g.Keep); err != nil {
		return err
	}
	for _, path := range marked {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("double-held: %w", err)
		}
	}
	for _, held := range grants {
		if held == nil {
			continue
		}
		if held.Err() != nil {
			return held.Err()
		}
		if err := held.Release(); err != nil {
			return err
		}
	}
	return nil
}

// either asks for the same number of GPUs on every host, and takes the first host that has them.
func (g simulated) either(states []*Waiting, hosts []string, random *rand.Rand) []Request {
	requests := make([]Request, len(hosts))
	taken := false
	for i := range hosts {
		devices := gpus(g.GPUs)
		random.Shuffle(len(devices), func(a, b int) { devices[a], devices[b] = devices[b], devices[a] })
		requests[i] = req(g.Run, g.Age, devices, g.Either)
		requests[i].Limit = g.Limit
		if !taken && states != nil && len(states[i].Spare) >= g.Either {
			requests[i].Take, taken = states[i].Spare[:g.Either], true
		}
	}
	return requests
}

// mark creates a link to the number of this process. It fails if the name exists, unless the process that it
// names was killed. Unlike the content of a file, a link is complete from the first moment.
func mark(path string) error {
	for {
		err := os.Symlink(strconv.Itoa(os.Getpid()), path)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// The locks of a killed process are released a moment before the process ends.
		pid, dead := "", false
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if pid, err = os.Readlink(path); err != nil {
				return fmt.Errorf("double-held: the other one has just given it back: %w", err)
			}
			if dead = ended(pid); dead {
				break
			}
		}
		if !dead {
			return fmt.Errorf("double-held: %s is marked by process %s, which lives", path, pid)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("double-held: %w", err)
		}
	}
}

// ended reports whether a process is gone, or is a zombie.
func ended(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return rest[0] == 'Z' || rest[0] == 'X'
}

// crowd describes one run of the simulation.
type crowd struct {
	gangs int
	keep  time.Duration // the longest time for which a gang keeps its GPUs
	kills int           // number of gangs that are killed
	uids  []int
}

// run starts gangs on 2 hosts of 8 GPUs at the same time, and checks the ticket rule.
func (c crowd) run(t *testing.T, random *rand.Rand) {
	const limit = 4 * time.Minute // this shows a deadlock, not a slow machine
	dir, markers := directory(t), directory(t)
	if err := os.Chmod(markers, 0o777); err != nil { // users remove marks of one another
		t.Fatal(err)
	}
	hosts := []string{"h1", "h2"}
	began := time.Now()
	var gangs []*helper
	killed := map[int]time.Duration{}
	for _, i := range random.Perm(c.gangs)[:c.kills] {
		killed[i] = time.Duration(random.Int64N(int64(200 * time.Millisecond)))
	}
	for i := range c.gangs {
		g := simulated{Run: fmt.Sprintf("run%02d", i), Age: random.IntN(4), Want: map[string]int{}, GPUs: 8,
			Keep: time.Duration(random.Int64N(int64(c.keep))), Markers: markers, Seed: random.Uint64()}
		most := 8
		if random.IntN(2) == 0 {
			most = 2
		}
		g.Want[hosts[random.IntN(2)]] = 1 + random.IntN(most)
		if random.IntN(2) == 0 {
			g.Want[hosts[random.IntN(2)]] = 1 + random.IntN(most)
		}
		if random.IntN(3) == 0 {
			g.Run += eitherMark
			g.Want, g.Either = map[string]int{hosts[0]: 0, hosts[1]: 0}, 1+random.IntN(most)
		}
		if random.IntN(4) == 0 {
			g.Limit = time.Minute
		}
		gangs = append(gangs, start(t, c.uids[i%len(c.uids)], order{Dir: dir, Gang: &g}))
	}

	var all sync.WaitGroup
	ends := make([]error, c.gangs)
	said := make([]string, c.gangs)
	for i, h := range gangs {
		all.Go(func() {
			if after, doomed := killed[i]; doomed {
				timer := time.AfterFunc(after, func() { h.cmd.Process.Kill() })
				defer timer.Stop()
			}
			text, err := h.out.ReadString(0)
			said[i] = text
			ends[i] = errors.Join(h.cmd.Wait())
			if err == nil {
				ends[i] = errors.New("the gang said nothing")
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	idled := c.observe(t, dir, hosts, done, began.Add(limit))
	select {
	case <-done:
	default:
		for _, h := range gangs {
			h.cmd.Process.Kill()
		}
		<-done
		t.Fatalf("deadlock: after %s some gangs still wait", limit)
	}
	for i := range gangs {
		if _, doomed := killed[i]; !doomed && (ends[i] != nil || said[i] != "held\n") || strings.Contains(said[i], "error") {
			t.Errorf("gang %d ended with %v and said %q", i, ends[i], said[i])
		}
	}
	for _, l := range list(t, dir) {
		if len(l.Waiting) > 0 || len(l.Warnings) > 0 {
			t.Errorf("left on %s: %+v %v", l.Host, l.Waiting, l.Warnings)
		}
		for _, lease := range l.Leases {
			if !lease.Idle() || lease.Warning != "" && c.kills == 0 || lease.State == StateDead && c.kills == 0 {
				t.Errorf("left on %s: %+v", l.Host, lease)
			}
		}
	}
	if took := time.Since(began); testing.Verbose() {
		t.Logf("%d gangs in %s; one that fits was seen waiting for %s", c.gangs, took.Round(time.Millisecond), idled.Round(time.Millisecond))
	}
}

// eitherMark is the end of the names of runs that need only one of their hosts.
const eitherMark = "-either"

// patienceOfIdle is how long a gang may fit before it starts. It is much longer than a start takes, because the
// machine may be busy, or the process of the gang may be stopped.
const patienceOfIdle = time.Minute

// observe looks at the leases until done is closed. No gang may wait long while the ticket rule lets it start.
// observe decides that without the rule of the package. It returns the longest time that a gang waited although
// it fitted.
func (c crowd) observe(t *testing.T, dir string, hosts []string, done <-chan struct{}, until time.Time) (longest time.Duration) {
	fits := map[string]time.Time{}
	for time.Now().Before(until) {
		select {
		case <-done:
			return longest
		case <-time.After(25 * time.Millisecond):
		}
		idle, oldest, wants := map[string]int{}, "", map[string]map[string]int{}
		var age time.Time
		for _, host := range hosts {
			idle[host] = 8
		}
		for _, l := range list(t, dir) {
			for _, lease := range l.Leases {
				if lease.State == StateHeld {
					idle[l.Host]--
				}
			}
			for _, w := range l.Waiting {
				run := w.Ticket.Run
				if wants[run] == nil {
					wants[run] = map[string]int{}
				}
				wants[run][l.Host] = w.Ticket.Count
				if oldest == "" || w.Ticket.Since.Before(age) || w.Ticket.Since.Equal(age) && run < oldest {
					oldest, age = run, w.Ticket.Since
				}
			}
		}
		now := time.Now()
		for run := range wants {
			// A gang fits if the idle GPUs are enough for it and all other gangs, or if it is the oldest and
			// they are enough for it. If one host is enough for it, they must be on one host.
			served := 0
			for _, host := range hosts {
				sum := 0
				for other, want := range wants {
					if other == run || run != oldest {
						sum += want[host]
					}
				}
				if sum <= idle[host] {
					served++
				}
			}
			free := served == len(hosts) || served > 0 && strings.HasSuffix(run, eitherMark)
			if !free {
				delete(fits, run)
				continue
			}
			if _, known := fits[run]; !known {
				fits[run] = now
			}
			longest = max(longest, now.Sub(fits[run]))
			if longest > patienceOfIdle {
				t.Errorf("%s fits since %s and still waits: idle are %v, waiting %v", run, longest, idle, wants)
				return longest
			}
		}
		for run := range fits {
			if wants[run] == nil {
				delete(fits, run)
			}
		}
	}
	return longest
}

func TestCrowdOfGangs(t *testing.T) {
	needRoot(t)
	seed := testseed.Number(t, "SEED", 1)
	for n, c := range []crowd{
		{gangs: 8, keep: 30 * time.Millisecond, uids: []int{nobody, other}},
		{gangs: 8, keep: 60 * time.Millisecond, kills: 4, uids: []int{0, nobody, other}},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { c.run(t, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
}
