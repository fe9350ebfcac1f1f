package pulse

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// ticks is the number of clock ticks per second in /proc. It is USER_HZ, which is 100 on every architecture that Go
// supports.
const ticks = 100

// Sampler takes the pulses of ranks in rounds. The zero value is ready to use.
type Sampler struct {
	ranks   map[int]*rank
	mounts  string // the text of /proc/self/mountinfo
	rounds  int
	network *Network // nil in the rounds that do not read the connections
}

// Round begins a round. pids are the processes that were started as ranks. spread is true if the ranks have
// peers on other hosts. Round returns the Table that Sample needs.
func (s *Sampler) Round(pids []int, spread bool) Table {
	s.network = nil
	if spread && s.rounds%networkEvery == 0 {
		n := Connections()
		s.network = &n
	}
	s.rounds++
	return Look(pids)
}

// mountinfo returns the mounts of this host. The Sampler needs them to find control groups. mountinfo reads them once,
// because they hardly ever change.
func (s *Sampler) mountinfo() string {
	if s.mounts == "" {
		data, _ := os.ReadFile("/proc/self/mountinfo") // without the mounts, no limits are found
		s.mounts = string(data)
	}
	return s.mounts
}

// rank is what a Sampler remembers of a rank.
type rank struct {
	last, gone counts // gone has the counts of processes that have left the rank's tree
	delays     delays
	traffic    traffic
}

// counts are sums over the processes of a rank. They include the children that these processes have waited
// for.
type counts struct{ cpu, faults, read, written, ran, waited int64 }

// Sample returns the part of a rank's pulse that comes from /proc. pid is the process that was started as the
// rank. ok is false if that process has ended.
func (s *Sampler) Sample(t Table, number, pid int) (p job.Pulse, ok bool) {
	worker, ok := t.Working(pid)
	if !ok {
		return job.Pulse{}, false
	}
	p = job.Pulse{Rank: number, PID: worker.PID, State: State(worker.State)}
	var now counts
	tree := t.Tree(pid)
	for _, process := range tree {
		p.Processes++
		switch process.State {
		case 'D':
			p.Stuck++
		case 'Z', 'X':
			p.Zombies++
		}
		p.RSS += process.RSS * int64(os.Getpagesize())
		now.cpu += int64(process.User + process.System + process.Waited)
		now.faults += int64(process.Faults)
		read, written := transferred(process.PID)
		now.read += read
		now.written += written
	}
	now.ran, now.waited = scheduled(tree, worker.PID)
	if s.ranks == nil {
		s.ranks = map[int]*rank{}
	}
	r := s.ranks[number]
	if r == nil {
		r = &rank{}
		s.ranks[number] = r
	}
	r.add(now)
	p.CPU = job.Duration(time.Duration(r.gone.cpu+now.cpu) * time.Second / ticks)
	p.Faults, p.Read, p.Written = r.gone.faults+now.faults, r.gone.read+now.read, r.gone.written+now.written
	p.Delays = job.Delays{
		Ran: job.Duration(r.gone.ran + now.ran), Waited: job.Duration(r.gone.waited + now.waited),
		Throttled: job.Duration(r.delays.held(worker.PID, s.mountinfo)), Cores: cores(worker.PID), File: waitsForFile(worker),
	}
	if s.network != nil {
		r.traffic.look(*s.network, tree)
	}
	r.traffic.set(&p.Delays)
	return p, true
}

// add updates r with the counts of a round. If a count has become smaller because a process has left the
// tree, add adds the difference to r.gone, so that the sum of both never falls.
func (r *rank) add(now counts) {
	for _, c := range []struct{ last, now, gone *int64 }{
		{&r.last.cpu, &now.cpu, &r.gone.cpu}, {&r.last.faults, &now.faults, &r.gone.faults},
		{&r.last.read, &now.read, &r.gone.read}, {&r.last.written, &now.written, &r.gone.written},
		{&r.last.ran, &now.ran, &r.gone.ran}, {&r.last.waited, &now.waited, &r.gone.waited},
	} {
		*c.gone += max(0, *c.last-*c.now)
		*c.last = *c.now
	}
}

// transferred returns the bytes that a process has read and written with system calls. It returns zeros if
// this user may not read /proc/PID/io.
func transferred(pid int) (read, written int64) {
	data, err := os.ReadFile(procfs.Path(pid, "io"))
	if err != nil {
		return 0, 0
	}
	return value(data, "rchar: "), value(data, "wchar: ")
}

// value returns the number that follows key in data.
func value(data []byte, key string) int64 {
	_, rest, ok := bytes.Cut(data, []byte(key))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.ParseInt(string(line), 10, 64)
	return n
}

// State returns the state for which a letter in /proc/PID/stat stands.
func State(letter byte) job.ProcessState {
	switch letter {
	case 'R':
		return job.ProcessRunning
	case 'D':
		return job.ProcessDisk
	case 'T':
		return job.ProcessStopped
	case 't':
		return job.ProcessTraced
	case 'Z', 'X':
		return job.ProcessZombie
	}
	return job.ProcessSleeping
}
