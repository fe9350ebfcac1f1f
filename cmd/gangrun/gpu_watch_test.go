package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/topology/lease"
)

// gpuScene is the content of a directory of leases at one moment.
type gpuScene struct {
	idle    map[string]map[string]bool // the GPUs that are idle, by host
	holds   map[int]int                // number of GPUs by the PID of the gang that holds them
	waiting []gpuWaiter                // sorted by age, the oldest first
}

// gpuWaiter is a gang that waits for GPUs.
type gpuWaiter struct {
	pid   int
	since time.Time
	run   string
	// For each host, could has the GPUs that the gang could use, and count the number of GPUs that its ticket claims.
	could map[string][]string
	count map[string]int
}

// newGPUScene returns the scene that listings show. It combines the tickets of a gang on several hosts.
func newGPUScene(hosts map[string]int, listings []lease.Listing) gpuScene {
	s := gpuScene{idle: map[string]map[string]bool{}, holds: map[int]int{}}
	for host, gpus := range hosts {
		s.idle[host] = map[string]bool{}
		for i := range gpus {
			s.idle[host][fmt.Sprintf("GPU%d", i)] = true
		}
	}
	for _, l := range listings {
		for _, gpu := range l.Leases {
			if gpu.State == lease.StateFree || gpu.State == lease.StateDead {
				continue
			}
			delete(s.idle[l.Host], gpu.Device)
			if gpu.Owner != nil {
				s.holds[gpu.Owner.PID]++
			}
		}
		for _, w := range l.Waiting {
			i := slices.IndexFunc(s.waiting, func(x gpuWaiter) bool { return x.pid == w.Owner.PID })
			if i < 0 {
				i = len(s.waiting)
				s.waiting = append(s.waiting, gpuWaiter{pid: w.Owner.PID, since: w.Ticket.Since, run: w.Ticket.Run, could: map[string][]string{}, count: map[string]int{}})
			}
			s.waiting[i].could[l.Host], s.waiting[i].count[l.Host] = w.Ticket.Devices, w.Ticket.Count
		}
	}
	slices.SortFunc(s.waiting, func(a, b gpuWaiter) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return s
}

func (w gpuWaiter) before(o gpuWaiter) bool {
	return w.since.Before(o.since) || w.since.Equal(o.since) && w.run < o.run
}

func (s gpuScene) waits(pid int) bool {
	return slices.ContainsFunc(s.waiting, func(w gpuWaiter) bool { return w.pid == pid })
}

// gpuNeed says how many ranks a gang has, and how many GPUs each rank needs. The GPUs of a rank are on one host.
type gpuNeed struct{ ranks, gpus int }

// startable returns the PIDs of the gangs that wait although they could start: there are enough idle GPUs even after
// every older gang has got what its tickets claim. This implements the ticket rule independently of package lease. It
// is never more generous than the rule, because it counts the whole claim of an older gang against the GPUs that a
// younger gang could use.
func (s gpuScene) startable(needs map[int]gpuNeed) (pids []int) {
	for i, w := range s.waiting {
		need, known := needs[w.pid]
		if !known {
			continue
		}
		ranks := 0
		for host, could := range w.could {
			left := 0
			for _, gpu := range could {
				if s.idle[host][gpu] {
					left++
				}
			}
			for _, older := range s.waiting[:i] {
				left -= older.count[host]
			}
			ranks += max(0, left) / need.gpus
		}
		if ranks >= need.ranks {
			pids = append(pids, w.pid)
		}
	}
	return pids
}

// greedy returns the PIDs of the gangs that claim more GPUs on one host than they need. A gang may claim its GPUs on
// every host on which it could start.
func (s gpuScene) greedy(needs map[int]gpuNeed) (pids []int) {
	for _, w := range s.waiting {
		most := 0
		for _, n := range w.count {
			most = max(most, n)
		}
		if need, known := needs[w.pid]; known && most > need.ranks*need.gpus {
			pids = append(pids, w.pid)
		}
	}
	return pids
}

// A gang has a fault only if many looks over a long time have seen the same fault. A single look may come just before
// the gang changes its state, and the machine may be busy.
const (
	gpuWrongFor   = 30 * time.Second
	gpuWrongLooks = 100
	gpuLookEvery  = 20 * time.Millisecond
)

// streak says for how long, and how often in a row, a fault was seen.
type streak struct {
	since time.Time
	looks int
}

// streaks has the streaks of gangs, by their PIDs.
type streaks map[int]streak

// seen adds the result of a look. It returns the PID of a gang whose fault was seen for too long, or 0 if there is
// none.
func (s streaks) seen(now time.Time, pids []int) (wrong int) {
	for pid := range s {
		if !slices.Contains(pids, pid) {
			delete(s, pid)
		}
	}
	for _, pid := range pids {
		one, known := s[pid]
		if !known {
			one.since = now
		}
		one.looks++
		s[pid] = one
		if one.looks >= gpuWrongLooks && now.Sub(one.since) >= gpuWrongFor {
			wrong = pid
		}
	}
	return wrong
}

// gpuWatch looks at a directory of leases at short intervals.
type gpuWatch struct {
	dir   string
	hosts map[string]int

	mu      sync.Mutex
	pids    map[string]int // the PIDs of the gangs, by their names
	needs   map[int]gpuNeed
	scene   gpuScene
	looks   int
	idled   time.Duration     // the longest time that a gang was seen to wait although it could have started
	files   map[string]uint64 // the inodes of the lock files
	faults  []string
	wrongBy map[string]streaks
}

func newGPUWatch(dir string, hosts map[string]int) *gpuWatch {
	return &gpuWatch{dir: dir, hosts: hosts, needs: map[int]gpuNeed{}, files: map[string]uint64{}, wrongBy: map[string]streaks{"startable": {}, "greedy": {}}}
}

// gang tells the gpuWatch about a gang that was started.
func (w *gpuWatch) gang(name string, pid int, need gpuNeed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.needs[pid] = need
	if w.pids == nil {
		w.pids = map[string]int{}
	}
	w.pids[name] = pid
}

// own replaces the PID of an owner. The owner is an agent, and the new PID is that of the controller of its gang. The
// name of the run tells which gang it is.
func (w *gpuWatch) own(o *lease.Owner) {
	for name, pid := range w.pids {
		if o != nil && strings.Contains(o.Run, "-"+name+"-") {
			o.PID = pid
		}
	}
}

// now returns the latest scene and the number of looks so far.
func (w *gpuWatch) now() (gpuScene, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scene, w.looks
}

// run looks until ctx ends or something is wrong.
func (w *gpuWatch) run(ctx context.Context) {
	tick := time.NewTicker(gpuLookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		listings, err := lease.List(ctx, w.dir)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.fault("the leases cannot be listed: %v", err)
			return
		}
		w.look(time.Now(), listings)
		files, _ := lockFiles(w.dir)
		w.same(files)
	}
}

// same checks that no lock file was removed or replaced since the last look.
func (w *gpuWatch) same(files map[string]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, before := range w.files {
		if files[name] != before {
			w.faults = append(w.faults, fmt.Sprintf("the lock file %s had inode %d and has %d", name, before, files[name]))
		}
	}
	w.files = files
}

func (w *gpuWatch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// look evaluates the result of one look.
func (w *gpuWatch) look(now time.Time, listings []lease.Listing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range listings {
		for i := range l.Leases {
			w.own(l.Leases[i].Owner)
		}
		for i := range l.Waiting {
			w.own(&l.Waiting[i].Owner)
		}
	}
	w.scene = newGPUScene(w.hosts, listings)
	w.looks++
	judged := map[string][]int{"startable": w.scene.startable(w.needs), "greedy": w.scene.greedy(w.needs)}
	for what, pids := range judged {
		if wrong := w.wrongBy[what].seen(now, pids); wrong != 0 {
			w.faults = append(w.faults, fmt.Sprintf("the gang of process %d, which needs %+v, has been %s for %s: %+v", wrong, w.needs[wrong], what, gpuWrongFor, w.scene))
			delete(w.wrongBy[what], wrong)
		}
	}
	for _, one := range w.wrongBy["startable"] {
		w.idled = max(w.idled, now.Sub(one.since))
	}
}

// quiet reports whether, of the gangs pids, only the gang but holds GPUs. All others must wait, and none may be able
// to start.
func (s gpuScene) quiet(pids []int, but int, needs map[int]gpuNeed) bool {
	for _, pid := range pids {
		if pid != but && (!s.waits(pid) || s.holds[pid] > 0) {
			return false
		}
	}
	return len(s.startable(needs)) == 0
}

var lockName = regexp.MustCompile(`^gangrun\.h[12]\.(order|ticket\.\d+|gpu\.GPU[0-7])$`)

// lockFiles returns the inodes of the lock files in dir by their names. It also returns what is wrong: all must be
// regular files of mode 0666 with one name.
func lockFiles(dir string) (files map[string]uint64, wrong []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, []string{err.Error()}
	}
	files = map[string]uint64{}
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, e.Name()))
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		stat := info.Sys().(*syscall.Stat_t)
		if !lockName.MatchString(e.Name()) || info.Mode() != 0o666 || stat.Nlink != 1 {
			wrong = append(wrong, fmt.Sprintf("%s has mode %v and %d names", e.Name(), info.Mode(), stat.Nlink))
		}
		files[e.Name()] = stat.Ino
	}
	return files, wrong
}

// TestGPUScene checks which gangs count as waiting without a reason, and which as greedy.
func TestGPUScene(t *testing.T) {
	at := time.Unix(1e9, 0)
	could := []string{"GPU0", "GPU1", "GPU2", "GPU3"}
	ticket := func(pid, age, count int) lease.Waiter {
		return lease.Waiter{Owner: lease.Owner{PID: pid}, Ticket: lease.Ticket{Run: fmt.Sprint(pid), Since: at.Add(-time.Duration(age) * time.Second), Devices: could, Count: count}}
	}
	held := func(pid int, gpus ...string) (leases []lease.Lease) {
		for _, gpu := range gpus {
			leases = append(leases, lease.Lease{Device: gpu, State: lease.StateHeld, Owner: &lease.Owner{PID: pid}})
		}
		return append(leases, lease.Lease{Device: "GPU3", State: lease.StateDead, Owner: &lease.Owner{PID: 99}})
	}
	for name, c := range map[string]struct {
		listings []lease.Listing
		needs    map[int]gpuNeed
		want     []int
		greedy   []int
	}{
		"nobody":             {},
		"idle":               {[]lease.Listing{{Host: "h1", Waiting: []lease.Waiter{ticket(1, 5, 2)}}}, map[int]gpuNeed{1: {2, 1}}, []int{1}, nil},
		"held":               {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0", "GPU1", "GPU2"), Waiting: []lease.Waiter{ticket(1, 5, 2)}}}, map[int]gpuNeed{1: {2, 1}}, nil, nil},
		"dead":               {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0", "GPU1"), Waiting: []lease.Waiter{ticket(1, 5, 2)}}}, map[int]gpuNeed{1: {2, 1}}, []int{1}, nil},
		"an older one first": {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 2), ticket(3, 6, 2)}}}, map[int]gpuNeed{1: {2, 1}, 3: {2, 1}}, []int{3}, nil},
		"both":               {[]lease.Listing{{Host: "h1", Waiting: []lease.Waiter{ticket(1, 5, 2), ticket(3, 6, 2)}}}, map[int]gpuNeed{1: {2, 1}, 3: {2, 1}}, []int{3, 1}, nil},
		"past a big one":     {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(3, 6, 0), ticket(1, 5, 3)}}, {Host: "h2", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(3, 6, 4), ticket(1, 5, 0)}}}, map[int]gpuNeed{3: {1, 4}, 1: {3, 1}}, []int{1}, nil},
		"over two hosts":     {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 4)}}, {Host: "h2", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 0)}}}, map[int]gpuNeed{1: {4, 1}}, []int{1}, nil},
		"whole ranks":        {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 4)}}, {Host: "h2", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 2)}}}, map[int]gpuNeed{1: {3, 2}}, nil, nil},
		"greedy":             {[]lease.Listing{{Host: "h1", Leases: held(2, "GPU0"), Waiting: []lease.Waiter{ticket(1, 5, 4)}}, {Host: "h2", Leases: held(2, "GPU0", "GPU1", "GPU2"), Waiting: []lease.Waiter{ticket(1, 5, 1)}}}, map[int]gpuNeed{1: {3, 1}}, []int{1}, []int{1}},
	} {
		s := newGPUScene(map[string]int{"h1": 4, "h2": 4}, c.listings)
		if got := s.startable(c.needs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are seen to wait without a reason, want %v", name, got, c.want)
		}
		if got := s.greedy(c.needs); !slices.Equal(got, c.greedy) {
			t.Errorf("%s: %v are seen to claim too much, want %v", name, got, c.greedy)
		}
	}
	w := newGPUWatch("", map[string]int{"h1": 4})
	w.gang("g01", 1, gpuNeed{2, 1})
	idle := []lease.Listing{{Host: "h1", Waiting: []lease.Waiter{ticket(1, 5, 2)}}}
	for i := range gpuWrongLooks - 1 {
		w.look(at.Add(time.Duration(i)*time.Second), idle)
	}
	w.look(at.Add(time.Hour), nil)
	for i := range gpuWrongLooks - 1 {
		w.look(at.Add(time.Duration(i)*time.Second), idle)
	}
	if len(w.faults) > 0 {
		t.Errorf("after too few looks: %q", w.faults)
	}
	w.look(at.Add(time.Hour), idle)
	if len(w.faults) != 1 {
		t.Errorf("a gang that waits without a reason gives %q", w.faults)
	}
}
