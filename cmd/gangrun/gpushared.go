package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// gpuUse finds out whether ranks that see each other's GPUs have mixed them up, by the
// processes that the driver names. A mistake counts once two looks in a row show it: a
// rank may touch another GPU on its way to its own. One goroutine at a time may call
// process and looked, any may call started.
type gpuUse struct {
	gpus   heldGPUs
	parent func(pid int) int // 0 where it is not known

	mu    sync.Mutex
	ranks map[int]int // by the PID of the process that gangrun started

	use    map[string][]int // ranks by the GPU that they use, in this look
	before mixedUp          // what the look before showed
	told   bool
}

func newGPUUse(gpus heldGPUs) *gpuUse {
	return &gpuUse{gpus: gpus, parent: parentOf, ranks: map[int]int{}, use: map[string][]int{}}
}

// mixedUp is a GPU that several ranks use.
type mixedUp struct {
	uuid  string
	users []int // in order
	stray []int // those of them that use no GPU of their own
}

// started notes the process of a rank on host.
func (u *gpuUse) started(e job.Event) {
	if e.Kind == job.KindStarted && e.Host == u.gpus.host {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.ranks[e.PID] = e.Rank
	}
}

// process notes that a process uses a GPU.
func (u *gpuUse) process(e nvml.Event) {
	if rank, ours := u.rankOf(e.PID); ours && !slices.Contains(u.use[e.UUID], rank) {
		u.use[e.UUID] = append(u.use[e.UUID], rank)
	}
}

// deepest bounds how many processes may stand between a rank and one that uses a GPU.
const deepest = 64

// rankOf returns the rank that a process belongs to: itself, or what started it.
func (u *gpuUse) rankOf(pid int) (rank int, ours bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range deepest {
		if rank, ours = u.ranks[pid]; ours || pid <= 1 {
			return rank, ours
		}
		pid = u.parent(pid)
	}
	return 0, false
}

// looked ends a look. It returns a mistake that two looks have shown, once.
func (u *gpuUse) looked() (m mixedUp, is bool) {
	m = u.gpus.mixedUp(u.use)
	again := m.uuid != "" && m.uuid == u.before.uuid
	u.before, u.use = m, map[string][]int{}
	if !again || u.told {
		return m, false
	}
	u.told = true
	return m, true
}

// mixedUp returns the first GPU that several ranks use, some of which use none of their
// own. A rank that also touches the GPU of another has not mixed them up.
func (g heldGPUs) mixedUp(use map[string][]int) mixedUp {
	own := func(rank int) bool {
		return slices.ContainsFunc(g.uuids, func(uuid string) bool {
			return slices.Contains(g.ranks[uuid], rank) && slices.Contains(use[uuid], rank)
		})
	}
	for _, uuid := range g.uuids {
		m := mixedUp{uuid: uuid, users: slices.Sorted(slices.Values(use[uuid]))}
		for _, rank := range m.users {
			if !own(rank) {
				m.stray = append(m.stray, rank)
			}
		}
		if len(m.users) > 1 && len(m.stray) > 0 {
			return m
		}
	}
	return mixedUp{}
}

// mixedUpWords says what has happened, and what to add to the program.
func (g heldGPUs) mixedUpWords(m mixedUp) string {
	var idle []string
	each := 0 // GPUs of a rank
	for _, uuid := range g.uuids {
		if slices.Contains(g.ranks[uuid], m.stray[0]) {
			each++
		}
		if slices.ContainsFunc(m.stray, func(rank int) bool { return slices.Contains(g.ranks[uuid], rank) }) {
			idle = append(idle, g.label[uuid])
		}
	}
	index := `int(os.environ["LOCAL_RANK"])`
	if each > 1 {
		index += fmt.Sprintf(" * %d", each)
	}
	stray := ranksInWords(m.stray) + " do not use their own"
	if len(m.stray) == 1 {
		stray = ranksInWords(m.stray) + " does not use its own"
	}
	return fmt.Sprintf("%s is used by %s; %s (%s): call torch.cuda.set_device(%s) before the program first uses CUDA, or run with --gpu-visibility rank",
		g.name(m.uuid, ""), ranksInWords(m.users), stray, few(idle), index)
}

// ranksInWords is "rank 1" or "ranks 0, 1".
func ranksInWords(ranks []int) string {
	numbers := make([]string, len(ranks))
	for i, r := range ranks {
		numbers[i] = strconv.Itoa(r)
	}
	if len(ranks) == 1 {
		return "rank " + numbers[0]
	}
	return "ranks " + few(numbers)
}

// parentOf reads the parent of a process, field 4 of /proc/PID/stat: the program's name
// before it stands in parentheses, and may hold anything.
func parentOf(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
