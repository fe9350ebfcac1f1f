package pulse

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// ticks is how many clock ticks /proc counts in a second (USER_HZ, which is 100 on every
// architecture that Go supports).
const ticks = 100

// Sampler takes the pulses of ranks, one round after the other. The zero value is ready to use.
type Sampler struct {
	ranks   map[int]*rank
	mounts  string // /proc/self/mountinfo
	rounds  int
	network *Network // nil in the rounds that do not look at it
}

// Round begins a round for ranks with those processes. It returns the table for Sample. If spread is
// true, the ranks have peers on other hosts.
func (s *Sampler) Round(pids []int, spread bool) Table {
	s.network = nil
	if spread && s.rounds%networkEvery == 0 {
		n := Connections()
		s.network = &n
	}
	s.rounds++
	return Look(pids)
}

// mountinfo returns the mounts of this host, for the control groups. They hardly change.
func (s *Sampler) mountinfo() string {
	if s.mounts == "" {
		data, _ := os.ReadFile("/proc/self/mountinfo") // without it, there are no limits
		s.mounts = string(data)
	}
	return s.mounts
}

// rank is what a Sampler remembers of a rank.
type rank struct {
	last, gone counts // gone is what processes had counted that are no longer below the rank
	delays     delays
	traffic    traffic
}

// counts are counters of a rank's processes, with those of the children that they have waited for.
type counts struct{ cpu, faults, read, written, ran, waited int64 }

// Sample returns the part of a rank's pulse that its processes show. pid is the rank's process. ok
// is false if that has ended.
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

// add keeps the counters from falling when a process has left the rank's tree.
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

// transferred returns the bytes of the read and write calls of a process; zeros if this user may
// not know them.
func transferred(pid int) (read, written int64) {
	data, err := os.ReadFile(procfs.Path(pid, "io"))
	if err != nil {
		return 0, 0
	}
	return value(data, "rchar: "), value(data, "wchar: ")
}

// value returns the number behind a key.
func value(data []byte, key string) int64 {
	_, rest, ok := bytes.Cut(data, []byte(key))
	if !ok {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.ParseInt(string(line), 10, 64)
	return n
}

// State returns the state that a letter of /proc/PID/stat means.
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
