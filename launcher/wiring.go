package launcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
	"github.com/gangrun/gangrun/launcher/rankenv"
)

// resolved says how the ranks of an attempt find each other.
type resolved struct {
	mpi   job.MPI
	none  bool // the ranks certainly use no MPI: see job.Attempt.NoMPI
	found bool // the program's libraries show that it uses mpi
}

// resolve returns how the ranks of an attempt find each other. The user may have specified it. Otherwise, it depends on
// the libraries of the program.
func (l *Launcher) resolve(ctx context.Context, a job.Attempt, first *agents.Agent) (resolved, error) {
	switch a.MPI {
	case "", job.MPINone:
		return resolved{mpi: job.MPINone, none: true}, nil
	case job.MPIAuto:
	default:
		return resolved{mpi: a.MPI}, nil
	}
	var found job.MPI
	python := true
	var whose string
	for _, p := range programs(a) {
		asking, stop := l.looking(ctx, first, fmt.Sprintf("the program %q in %q and the libraries that it needs", p.command[0], p.workdir))
		reply, err := first.Client.Library(asking, &wire.LibraryRequest{Argv: wire.Bytes(p.command), Workdir: []byte(p.workdir), Env: wire.Bytes(p.env), Gang: a.GangName()})
		if err != nil {
			err = fmt.Errorf("look for the program's MPI on %s: %w", first.Host, unseen(ctx, asking, first, err))
		}
		stop()
		if err != nil {
			return resolved{}, err
		}
		python = python && reply.Python
		mpi := job.MPI(reply.Mpi)
		if mpi == "" {
			continue
		}
		if found != "" && mpi != found {
			return resolved{}, mixed{programs: [2]string{whose, p.command[0]}, mpis: [2]job.MPI{found, mpi}}
		}
		found, whose = mpi, p.command[0]
	}
	if found == "" {
		// The program may be a wrapper. PMI does no harm to a program that does not ask for it.
		return resolved{mpi: job.MPIMPICH, none: python}, nil
	}
	return resolved{mpi: found, found: true}, nil
}

// mixed is the error if the programs of a gang are built for different MPIs.
type mixed struct {
	programs [2]string
	mpis     [2]job.MPI
}

// Error names both programs.
func (m mixed) Error() string {
	return fmt.Sprintf("%q is built for %s and %q for %s: one gang cannot hold both", m.programs[0], m.mpis[0], m.programs[1], m.mpis[1])
}

// outcome returns the outcome of the gang. None of its ranks was started.
func (m mixed) outcome(a job.Attempt, emit func(job.Event)) job.Outcome {
	var o job.Outcome
	for i, r := range a.Placement.Ranks {
		e := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Unstarted, Time: time.Now(), Stopped: i > 0, Text: m.Error(), Reason: job.ReasonMixedMPI}
		o.Exits = append(o.Exits, e)
		emit(job.Event{Time: e.Time, Kind: job.KindExit, Attempt: a.Number, Exit: &e})
	}
	return o
}

// program is one of an attempt's different programs.
type program struct {
	command []string
	workdir string
	env     []string
}

// programs lists the different programs of an attempt.
func programs(a job.Attempt) (all []program) {
	first := 0
	for _, app := range a.Apps {
		p := program{app.Command, cmp.Or(app.Workdir, a.Workdir), rankenv.Rank(a, job.Rank{Rank: first})}
		first += app.Ranks
		if !slices.ContainsFunc(all, func(o program) bool {
			return slices.Equal(o.command, p.command) && o.workdir == p.workdir && slices.Equal(withoutRank(o.env), withoutRank(p.env))
		}) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		all = []program{{a.Command, a.Workdir, rankenv.Rank(a, job.Rank{})}}
	}
	return all
}

// withoutRank returns an environment without the variables that differ among ranks.
func withoutRank(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.Contains(entry, "RANK=") })
}

// nodesOf returns, for each rank, the number of its host.
func nodesOf(a job.Attempt) []int {
	nodes := make([]int, len(a.Placement.Ranks))
	for _, r := range a.Placement.Ranks {
		nodes[r.Rank] = r.Node
	}
	return nodes
}

// wiring has what the controller knows about how the ranks find each other.
type wiring struct {
	mpi             job.MPI
	mpiNamed        bool // the user has named the MPI
	barriers        barriers
	members         members
	inquiry         inquiry
	openmpi         openmpiState
	allReported     bool // an event says that all ranks have joined
	singletonsNoted bool // an event says that the ranks are singletons
	singletonsEnded bool // the gang was ended because its ranks are singletons
}

// barriers is the state of PMI-1 for ranks of MPICH.
type barriers struct {
	hub        *pmi1.Hub
	released   map[string]int64 // number of barriers of each group that have been released
	standing   map[*node][]pmi1.RankLinks
	lastSought time.Time // when hosts were last asked for the states of their ranks
}

// members says which ranks have joined the others, as far as hosts have reported that.
type members struct {
	joined  map[int]bool
	waiting map[int]bool
	silent  map[int]bool
	library string // the MPI library that ranks have loaded
	lasting bool   // the program of a rank has initialised the library
}

// inquiry is the state of a question to all hosts: which of their ranks have joined?
type inquiry struct {
	overdue <-chan time.Time // fires when all ranks should have joined
	answers int              // number of hosts that have not answered yet
	late    bool             // the hosts were asked because ranks are overdue
}

// openmpiState is the state of mpirun and its daemons.
type openmpiState struct {
	ordered bool             // Open MPI has asked gangrun to end the gang
	judging <-chan time.Time // fires when the gang must end for that reason
	pids    map[int]int      // the rank of each process
	daemons map[int32]*node  // by the ID of their Spawn
}

func newWiring(mpi job.MPI, mpiNamed bool, nodes []*node) *wiring {
	w := &wiring{
		mpi: mpi, mpiNamed: mpiNamed,
		barriers: barriers{released: map[string]int64{}, standing: map[*node][]pmi1.RankLinks{}},
		members:  members{joined: map[int]bool{}, waiting: map[int]bool{}, silent: map[int]bool{}},
		openmpi:  openmpiState{pids: map[int]int{}, daemons: map[int32]*node{}},
	}
	if mpi == job.MPIMPICH {
		ranks := make([][]int, len(nodes))
		for i, n := range nodes {
			for _, r := range n.ranks {
				ranks[i] = append(ranks[i], r.Rank)
			}
		}
		w.barriers.hub = pmi1.NewHub(ranks)
	}
	return w
}

// see adds the report of a host.
func (w *wiring) see(up job.Wireup) {
	for _, r := range up.In {
		w.members.joined[r] = true
		delete(w.members.silent, r)
		delete(w.members.waiting, r)
	}
	for _, r := range up.Waiting {
		w.members.waiting[r] = true
	}
	for _, r := range up.Silent {
		w.members.silent[r] = true
	}
	w.openmpi.ordered = w.openmpi.ordered || up.Ordered
	if up.Library != "" {
		w.members.library, w.members.lasting = up.Library, w.members.lasting || up.Lasting
	}
}

// wireup returns what is known about all ranks.
func (w *wiring) wireup() *job.Wireup {
	list := func(of map[int]bool) []int {
		ranks := make([]int, 0, len(of))
		for r := range of {
			ranks = append(ranks, r)
		}
		slices.Sort(ranks)
		return ranks
	}
	return &job.Wireup{MPI: w.mpi, In: list(w.members.joined), Waiting: list(w.members.waiting), Silent: list(w.members.silent), Library: w.members.library, Lasting: w.members.lasting}
}

// alone returns a message if the ranks use Open MPI but were not started by mpirun. Otherwise it returns "".
func (w *wiring) alone(size int) string {
	if w.members.library == "" || len(w.members.joined) > 0 {
		return ""
	}
	how := "--mpi " + string(w.mpi)
	if !w.mpiNamed && w.mpi != job.MPINone {
		how = "PMI-1, as MPICH's are, since the program itself does not tell its MPI"
	}
	text := fmt.Sprintf("the program uses Open MPI (%s), and was started with %s", w.members.library, how)
	if size > 1 {
		text = "silent singletons: " + text + "; each rank believed to be rank 0 of 1"
	}
	return text
}

// faults has the text of each reason that fault returns.
var faults = map[job.Reason]string{
	job.ReasonNoFinalize: "it never called MPI_Finalize",
	job.ReasonNoInit:     "it never called MPI_Init, and the others wait for it there",
}

// fault returns why an exit with code 0 is a failure. If the exit is not known to be a failure, fault returns
// job.ReasonNone.
func (w *wiring) fault(e job.Exit, size int) job.Reason {
	if e.Status != job.Exited || e.Code != 0 || e.Aborted || e.Fault != "" {
		return job.ReasonNone
	}
	switch {
	case e.Joined == job.JoinedInit:
		return job.ReasonNoFinalize
	case e.Joined == job.JoinedSilent && size > 1 && len(w.members.joined) > 0:
		return job.ReasonNoInit
	}
	return job.ReasonNone
}

// singletons returns why a gang whose ranks have all exited with 0 has failed: none of them has found the others.
// Otherwise it returns "".
func (w *wiring) singletons(exits []job.Exit, size int) string {
	if size < 2 || len(w.members.joined) > 0 || !w.mpiNamed && (w.members.library == "" || w.mpi == job.MPINone) {
		return "" // the program does not use MPI
	}
	for _, e := range exits {
		if !e.Good() || e.Joined != job.JoinedSilent {
			return ""
		}
	}
	if w.members.library != "" {
		return fmt.Sprintf("every rank was a singleton, rank 0 of 1: it uses %s, and was started with --mpi %s", w.members.library, w.mpi)
	}
	return fmt.Sprintf("no rank ever spoke to --mpi %s: each was a singleton, rank 0 of 1, or the program uses no MPI", w.mpi)
}

// nodeName returns the name that mpirun gets for a host. The name of the first host is localhost. For another host, the
// name is an address, because mpirun would look up a name. mpirun never connects to the address, because the agents
// start its daemons. The addresses are from 198.18.0.0/15, which RFC 2544 reserves for benchmarks.
func nodeName(number int) string {
	if number == 0 {
		return "localhost"
	}
	return fmt.Sprintf("198.18.%d.%d", number/250, number%250+1)
}

// mpirunOf returns what the first host needs to start mpirun.
func mpirunOf(a job.Attempt, at rankenv.Rendezvous) *wire.Mpirun {
	m := &wire.Mpirun{}
	for i := range a.Placement.Hosts {
		m.Nodes = append(m.Nodes, nodeName(i))
	}
	for _, node := range nodesOf(a) {
		m.Node = append(m.Node, int32(node))
	}
	for _, app := range a.Apps {
		m.Apps = append(m.Apps, int32(app.Ranks))
	}
	m.Interface = []byte(a.Placement.Hosts[0].Network)
	if at.Address == rankenv.Loopback {
		m.Interface = []byte("lo")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		m.Env = append(m.Env, []byte(name+"="+a.Env[name]))
	}
	return m
}

// started records the process of a rank. If ranks on two hosts have the same process ID, lines with it belong to no rank.
func (o *openmpiState) started(pid, rank int) {
	if other, ok := o.pids[pid]; ok && other != rank {
		rank = -1
	}
	o.pids[pid] = rank
}

// rankPrefix matches the host and PID at the start of a line that Open MPI prints for a rank.
var rankPrefix = regexp.MustCompile(`^\[[^\[\]:]+:(\d+)\] `)

// speaker returns the rank for which mpirun has printed a line. It returns -1 if there is no such rank.
func (w *wiring) speaker(text string) int {
	if m := rankPrefix.FindStringSubmatch(text); m != nil && w.mpi == job.MPIOpenMPI {
		if pid, err := strconv.Atoi(m[1]); err == nil {
			if rank, ok := w.openmpi.pids[pid]; ok {
				return rank
			}
		}
	}
	return -1
}
