package gpuwatch

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology/nvml"
)

// sharing finds ranks that use the GPUs of other ranks, which is possible if ranks can see each other's GPUs. It also
// finds processes of other programs on the GPUs. It uses the list of processes that the driver reports. A finding
// counts only if two rounds in a row show it, because a rank may use another GPU for a moment before it uses its own
// GPU. Only one goroutine at a time may call process and endRound. Any goroutine may call started.
type sharing struct {
	gpus   gangGPUs
	seeAll bool                 // the ranks see each other's GPUs
	parent func(pid int) int    // returns 0 if the parent is not known
	name   func(pid int) string // returns the name of a process; empty for processes that do not count

	mu    sync.Mutex
	ranks map[int]int // by the PID of the process that gangrun has started

	users    map[string][]int // in this round: the ranks that use each GPU
	last     mixup            // the mixup of the previous round
	reported bool

	strange map[stranger]int    // number of rounds in a row in which a stranger was seen; -1 after it was reported
	now     map[stranger]string // names of the strangers in this round; empty for those that do not count
}

// stranger is a process that uses a GPU of the gang, and that belongs to no rank.
type stranger struct {
	uuid string
	pid  int
	name string // set when the process is reported
}

// maxStrangers limits how many strangers are watched.
const maxStrangers = 64

func newSharing(gpus gangGPUs) *sharing {
	return &sharing{
		gpus: gpus, parent: parentOf, name: describe, ranks: map[int]int{}, users: map[string][]int{},
		strange: map[stranger]int{}, now: map[stranger]string{},
	}
}

// mixup is a GPU that several ranks use. Some of them use it instead of their own GPU.
type mixup struct {
	uuid  string
	users []int // in order
	stray []int // the users that use no GPU of their own
}

// started records the process of a rank on this machine.
func (s *sharing) started(e job.Event) {
	if e.Kind == job.KindStarted && e.Host == s.gpus.host {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ranks[e.PID] = e.Rank
	}
}

// process records that a process uses a GPU.
func (s *sharing) process(e nvml.Event) {
	rank, ok := s.rankOf(e)
	switch {
	case !ok && len(s.now) < maxStrangers:
		p := stranger{uuid: e.UUID, pid: e.PID}
		s.now[p] = nameOf(e, s.name)
	case ok && !slices.Contains(s.users[e.UUID], rank):
		s.users[e.UUID] = append(s.users[e.UUID], rank)
	}
}

// maxDepth limits how many ancestors of a process are compared with the ranks.
const maxDepth = 64

// rankOf returns the rank to which the process of an event belongs. The process is the rank's process or a descendant
// of it.
func (s *sharing) rankOf(e nvml.Event) (rank int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := e.PID
	for depth := range maxDepth {
		if rank, ok = s.ranks[pid]; ok || pid <= 1 {
			return rank, ok
		}
		switch {
		case e.Origin == nil:
			pid = s.parent(pid)
		case depth < len(e.Origin.Ancestors):
			pid = e.Origin.Ancestors[depth]
		default:
			return 0, false
		}
	}
	return 0, false
}

// endRound ends a round of calls of process. It returns a mixup and strangers if two rounds in a row have shown them.
// It returns each of them only once.
func (s *sharing) endRound() (m mixup, found bool, strangers []stranger) {
	m = s.gpus.mixup(s.users)
	again := m.uuid != "" && m.uuid == s.last.uuid
	// If no process belongs to a rank, the PIDs of the ranks are not the PIDs that the driver knows.
	strangers = s.strangers(len(s.users) > 0)
	s.last, s.users = m, map[string][]int{}
	if !s.seeAll || !again || s.reported {
		return m, false, strangers
	}
	s.reported = true
	return m, true, strangers
}

// strangers ends a round. It returns the strangers that two rounds in a row have shown.
func (s *sharing) strangers(known bool) (found []stranger) {
	rounds := map[stranger]int{}
	for p, name := range s.now {
		rounds[p] = s.strange[p]
		if !known || rounds[p] < 0 {
			continue
		}
		if rounds[p]++; rounds[p] == 2 {
			rounds[p] = -1
			if name != "" {
				found = append(found, stranger{p.uuid, p.pid, name})
			}
		}
	}
	s.strange, s.now = rounds, map[stranger]string{}
	slices.SortFunc(found, func(a, b stranger) int { return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pid, b.pid)) })
	return found
}

// nameOf returns the name of the process of an event. It returns "" if the process has ended, or if it is the server of
// NVIDIA's MPS, which computes for other processes. look finds the name of a process in /proc of this machine.
func nameOf(e nvml.Event, look func(pid int) string) string {
	if e.Origin == nil {
		return look(e.PID)
	}
	return processText(e.PID, e.Origin.Name, e.Origin.UID)
}

// describe returns the name of a process of this machine.
func describe(pid int) string {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return ""
	}
	uid, ok := procfs.UID(pid)
	if !ok {
		uid = -1
	}
	return processText(pid, stat.Name, uid)
}

func processText(pid int, name string, uid int) string {
	if strings.HasPrefix(name, "nvidia-cuda-mps") {
		return ""
	}
	words := fmt.Sprintf("process %d (%s", pid, text.Printable(name))
	if uid >= 0 && uid != os.Getuid() {
		words += fmt.Sprintf(", of user %d", uid)
	}
	return words + ")"
}

// mixup returns the first GPU that several ranks use, if some of them use no GPU of their own. A
// rank that uses its own GPU and another one does not count as such a rank.
func (g gangGPUs) mixup(users map[string][]int) mixup {
	usesOwn := func(rank int) bool {
		return slices.ContainsFunc(g.uuids, func(uuid string) bool {
			return slices.Contains(g.ranks[uuid], rank) && slices.Contains(users[uuid], rank)
		})
	}
	for _, uuid := range g.uuids {
		m := mixup{uuid: uuid, users: slices.Sorted(slices.Values(users[uuid]))}
		for _, rank := range m.users {
			if !usesOwn(rank) {
				m.stray = append(m.stray, rank)
			}
		}
		if len(m.users) > 1 && len(m.stray) > 0 {
			return m
		}
	}
	return mixup{}
}

// mixupText returns a text that says what has happened, and what the user should add to the program.
func (g gangGPUs) mixupText(m mixup) string {
	var unused []string
	each := 0 // number of GPUs of a rank
	for _, uuid := range g.uuids {
		if slices.Contains(g.ranks[uuid], m.stray[0]) {
			each++
		}
		if slices.ContainsFunc(m.stray, func(rank int) bool { return slices.Contains(g.ranks[uuid], rank) }) {
			unused = append(unused, g.label[uuid])
		}
	}
	index := `int(os.environ["LOCAL_RANK"])`
	if each > 1 {
		index += fmt.Sprintf(" * %d", each)
	}
	stray := ranksText(m.stray) + " do not use their own"
	if len(m.stray) == 1 {
		stray = ranksText(m.stray) + " does not use its own"
	}
	return fmt.Sprintf("%s is used by %s; %s (%s): call torch.cuda.set_device(%s) before the program first uses CUDA, or run with --gpu-visibility rank",
		g.name(m.uuid, ""), ranksText(m.users), stray, text.Some(unused, maxNames), index)
}

// maxNames limits how many ranks or GPUs a text names.
const maxNames = 6

// ranksText returns a text such as "rank 1" or "ranks 0, 1".
func ranksText(ranks []int) string {
	numbers := make([]string, len(ranks))
	for i, r := range ranks {
		numbers[i] = strconv.Itoa(r)
	}
	if len(ranks) == 1 {
		return "rank " + numbers[0]
	}
	return "ranks " + text.Some(numbers, maxNames)
}

// parentOf returns the parent of a process, or 0 if it is not known.
func parentOf(pid int) int {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return 0
	}
	return stat.Parent
}
