package health

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/kernellog"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

const (
	// Period is the time between two samples. If memory is short, that time is shorter.
	Period = 5 * time.Second
	// closePeriod is the time between two samples if more than closeShare percent of a memory is used.
	closePeriod = time.Second
	closeShare  = 80
	// groupsFor is after how many samples the control groups of the ranks are read again.
	groupsFor = 12
)

// Options says what Watch watches, and where it sends its events.
type Options struct {
	Host string
	// Ranks returns the ranks that have not ended. The keys are the PIDs of their processes.
	Ranks func() map[int]int
	// Paths are the directories whose file systems are watched, the most important first. If several
	// directories are on the same file system, the use of the first counts.
	Paths []Path
	Emit  func(job.Event)
}

// Path is a directory, and what the gang uses it for.
type Path struct {
	Path string
	Use  Use
}

// Watch samples the health of this host until ctx ends, and emits an event for each sign.
func Watch(ctx context.Context, o Options) {
	s := newSampler(o)
	defer s.log.Close()
	judge := NewJudge()
	tell := func(signs []Sign) {
		for _, sign := range signs {
			o.Emit(job.Event{Time: hostclock.Now(), Kind: job.KindHealth, Host: o.Host, Health: &sign.Health, Text: sign.Text, Hint: sign.Hint})
		}
	}
	defer func() { tell(judge.Rest()) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			tell(judge.Judge(time.Now(), Sample{Kernel: slices.Collect(s.log.New()), Ranks: s.seen}))
			return
		case <-timer.C:
		}
		sample := s.sample(time.Now())
		tell(judge.Judge(time.Now(), sample))
		timer.Reset(sample.pause())
	}
}

// pause returns the time until the next sample.
func (s Sample) pause() time.Duration {
	if slices.ContainsFunc(s.Memory, func(m Memory) bool { return percentOf(m.Used, m.Limit) >= closeShare }) {
		return closePeriod
	}
	return Period
}

// sampler takes samples of this host.
type sampler struct {
	ranks  func() map[int]int
	disks  []*fileSystem
	log    *kernellog.Log
	mounts string
	groups map[int][]cgroup.Memory // by PID
	taken  int
	seen   map[int]int // all ranks so far, by PID; the kernel may report a rank that has ended
}

func newSampler(o Options) *sampler {
	s := &sampler{ranks: o.Ranks, log: kernellog.OpenLog(), seen: map[int]int{}}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	s.mounts = string(mounts)
	for _, p := range o.Paths {
		s.disks = append(s.disks, newFileSystem(p))
	}
	return s
}

func (s *sampler) sample(now time.Time) Sample {
	ranks := s.ranks()
	for pid, rank := range ranks {
		s.seen[pid] = rank
	}
	memory, kills := s.memory(ranks)
	return Sample{
		Memory: memory,
		Kills:  kills,
		Disks:  s.fileSystems(now),
		Kernel: slices.Collect(s.log.New()),
		Ranks:  s.seen,
	}
}

// memory reads the memory that the host and the control groups of the ranks use. It also reads how many
// processes of these groups the kernel has killed.
func (s *sampler) memory(ranks map[int]int) (all []Memory, kills []Kills) {
	if m, ok := hostMemory(); ok {
		all = append(all, m)
	}
	if s.taken%groupsFor == 0 {
		s.groups = map[int][]cgroup.Memory{}
	}
	s.taken++
	usage := map[cgroup.Memory]cgroup.Usage{} // groups that have a limit
	known := map[cgroup.Memory]bool{}
	at := map[string]int{}     // indices in all, by the group that has the limit
	killed := map[string]int{} // indices in kills, by the group that counts the kills
	counts := map[cgroup.Memory]string{}
	for pid, rank := range ranks {
		groups, found := s.groups[pid]
		if !found {
			own, _ := os.ReadFile(procfs.Path(pid, "cgroup"))
			groups = cgroup.MemoryOf(string(own), s.mounts)
			s.groups[pid] = groups
		}
		for _, g := range groups {
			if !known[g] {
				known[g] = true
				if u, ok := g.Tightest(); ok {
					usage[g] = u
				}
				if dir, n, ok := killsOf(g); ok {
					counts[g] = dir
					if _, listed := killed[dir]; !listed {
						killed[dir] = len(kills)
						kills = append(kills, Kills{Group: dir, Count: n})
					}
				}
			}
			if dir := counts[g]; dir != "" {
				kills[killed[dir]].Ranks = append(kills[killed[dir]].Ranks, rank)
			}
			u, limited := usage[g]
			if !limited {
				continue
			}
			i, listed := at[u.Dir]
			if !listed {
				i = len(all)
				at[u.Dir] = i
				all = append(all, Memory{Group: u.Dir, Limit: u.Limit, Used: u.Used})
			}
			all[i].Ranks = append(all[i].Ranks, rank)
		}
	}
	for i := range all {
		slices.Sort(all[i].Ranks)
		all[i].Ranks = slices.Compact(all[i].Ranks)
	}
	for _, k := range kills {
		slices.Sort(k.Ranks)
	}
	return all, kills
}

// killsOf returns the number of OOM kills of a group. If the memory of the group is not controlled, the group does not
// count its kills. In that case, the nearest group above it that counts them is used. dir is the group that counts.
func killsOf(g cgroup.Memory) (dir string, n int64, ok bool) {
	for dir = g.Dir; strings.HasPrefix(dir, g.Mount); dir = filepath.Dir(dir) {
		if n, ok = kernellog.Kills(kernellog.CountFile(cgroup.Memory{Dir: dir, V1: g.V1})); ok {
			return dir, n, true
		}
		if dir == "/" {
			break
		}
	}
	return "", 0, false
}

// hostMemory reads /proc/meminfo. Memory that the kernel can free (MemAvailable) does not count as used.
func hostMemory() (m Memory, ok bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, false
	}
	return parseMeminfo(string(data))
}

func parseMeminfo(text string) (m Memory, ok bool) {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "MemTotal", "MemAvailable", "SwapTotal", "SwapFree":
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return m, false
			}
			values[name] = kib << 10
		}
	}
	if _, ok = values["MemAvailable"]; !ok { // before Linux 3.14
		return m, false
	}
	m.Limit = values["MemTotal"] + values["SwapTotal"]
	m.Used = m.Limit - values["MemAvailable"] - values["SwapFree"]
	return m, m.Limit > 0
}
