package stacks

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
	"github.com/gangrun/gangrun/internal/procfs"
)

// proc is one process of a rank.
type proc struct {
	pid     int
	start   uint64 // with pid, this identifies the process
	spent   uint64 // its CPU time, in clock ticks
	python  bool
	tool    job.StackTool
	why     string // why no better tool has read the process
	threads []job.ThreadStack
	sp      map[int]uint64 // the stack pointers of the threads that wait in the kernel, by TID
}

var states = map[byte]job.ProcessState{
	'R': job.ProcessRunning, 'S': job.ProcessSleeping, 'I': job.ProcessSleeping, 'D': job.ProcessDisk,
	'T': job.ProcessStopped, 't': job.ProcessTraced, 'Z': job.ProcessZombie, 'X': job.ProcessZombie,
}

// readTree reads the processes of a rank. The process that does the rank's work comes first. If full is true,
// it also reads system calls. The kernel may delay that reading until a process has executed its program.
func readTree(root int, full bool) []proc {
	var tree []proc
	below := map[int][]int{}
	left := maxThreads
	for queue := []int{root}; len(queue) > 0 && len(tree) < maxProcesses && left > 0; queue = queue[1:] {
		p, ok := readProcess(queue[0], full, left)
		if !ok {
			continue
		}
		left -= len(p.threads)
		tree = append(tree, p)
		below[p.pid] = procfs.Children(p.pid)
		queue = append(queue, below[p.pid]...)
	}
	if worker := worker(tree, below); worker > 0 {
		p := tree[worker]
		tree = slices.Insert(slices.Delete(tree, worker, worker+1), 0, p)
	}
	if len(tree) > 0 {
		tree[0].threads[0].Main = true
	}
	return tree
}

// worker returns the index of the process that does the work of a rank. If a process is a shell or another
// program that only waits for its single child, the child does the work. If a shell waits for the programs of a
// pipeline, the one that has used the most CPU time does.
func worker(tree []proc, below map[int][]int) int {
	at := 0
	for at < len(tree) && waits(tree[at]) {
		children := below[tree[at].pid]
		if len(children) > 1 && !procfs.IsWrapper(tree[at].threads[0].Name) {
			break
		}
		next := -1
		for i, p := range tree {
			if slices.Contains(children, p.pid) && (next < 0 || p.spent > tree[next].spent) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return at
}

// waits reports whether a process does nothing but wait for its children. Some wrappers wait in another system call
// than wait(2).
func waits(p proc) bool {
	main := p.threads[0]
	return len(p.threads) == 1 && main.State == job.ProcessSleeping &&
		(main.Wait == "do_wait" || main.Syscall == "wait4" || main.Syscall == "waitid" || procfs.IsWrapper(main.Name))
}

func readProcess(pid int, full bool, most int) (p proc, ok bool) {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return p, false
	}
	p = proc{pid: pid, start: stat.Start, spent: stat.Spent(), tool: job.StackProc, sp: map[int]uint64{}}
	exe, _ := os.Readlink(procfs.Path(pid, "exe")) // the link cannot be read after the main thread has ended
	if p.python = isPython(filepath.Base(exe)); exe == "" {
		p.python = isPython(stat.Name)
	}
	for _, tid := range threadIDs(pid, most) {
		if t, ok := p.readThread(tid, full); ok {
			p.threads = append(p.threads, t)
		}
	}
	return p, len(p.threads) > 0 // the process may end meanwhile
}

// threadIDs returns the IDs of the threads of a process: first the main thread, whose ID is the PID, and then
// the others in ascending order.
func threadIDs(pid, most int) []int {
	dir, err := os.Open(procfs.Path(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // the names that were read before an error are enough
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.SortFunc(tids, func(a, b int) int {
		if (a == pid) != (b == pid) {
			return map[bool]int{true: -1, false: 1}[a == pid]
		}
		return cmp.Compare(a, b)
	})
	return tids[:min(len(tids), most)]
}

func (p *proc) readThread(tid int, full bool) (t job.ThreadStack, ok bool) {
	file := func(name string) string {
		data, _ := os.ReadFile(procfs.Path(p.pid, filepath.Join("task", strconv.Itoa(tid), name)))
		return strings.TrimSpace(string(data))
	}
	stat, err := procfs.ParseStat([]byte(file("stat")))
	if err != nil {
		return t, false
	}
	t = job.ThreadStack{PID: p.pid, TID: tid, Name: stat.Name, State: states[stat.State]}
	if wait := file("wchan"); wait != "0" {
		t.Wait = wait
	}
	if !full {
		return t, true
	}
	call := strings.Fields(file("syscall"))
	if len(call) == 9 { // number, six arguments, stack pointer, program counter
		number, err := strconv.Atoi(call[0])
		if err == nil && number >= 0 {
			t.Syscall = cmp.Or(syscalls[number], "system call "+call[0])
			t.On = p.object(number, call[1])
		}
	}
	if n := len(call); n >= 3 {
		if sp, err := strconv.ParseUint(strings.TrimPrefix(call[n-2], "0x"), 16, 64); err == nil {
			p.sp[tid] = sp
		}
	}
	if t.State == job.ProcessDisk {
		t.Frames = kernelFrames(file("stack"))
	}
	return t, true
}

// object returns the file on which a system call works whose first argument is a descriptor. The kernel
// itself has the text of the link, so no file system is asked.
func (p *proc) object(number int, argument string) string {
	fd, err := strconv.ParseUint(strings.TrimPrefix(argument, "0x"), 16, 64)
	if !onDescriptor[number] || err != nil {
		return ""
	}
	link, _ := os.Readlink(procfs.Path(p.pid, "fd/"+strconv.FormatUint(fd, 10)))
	switch kind, _, _ := strings.Cut(link, ":["); kind {
	case "pipe":
		return "a pipe"
	case "socket":
		return "a socket"
	}
	return link
}

var kernelFrame = pattern.New(`^\[<[0-9a-f]*>\] ([^+ ]+)`)

// kernelFrames parses /proc/PID/task/TID/stack, which only root may read.
func kernelFrames(stack string) (frames []job.Frame) {
	for line := range strings.Lines(stack) {
		if m := kernelFrame().FindStringSubmatch(line); m != nil && len(frames) < maxFrames {
			frames = append(frames, job.Frame{Function: m[1], File: job.KernelFile, Native: true})
		}
	}
	return frames
}

var pythonName = pattern.New(`^(python|pypy)[0-9.]*(-[a-z]+)?( \(deleted\))?$`)

// isPython reports whether name is the name of a Python interpreter.
func isPython(name string) bool { return pythonName.Match(name) }

// same reports whether the process has not ended since it was read.
func (p *proc) same() bool {
	stat, err := procfs.ReadStat(p.pid)
	return err == nil && stat.Start == p.start
}

// any reports whether a thread of the process is in one of the states.
func (p *proc) any(states ...job.ProcessState) bool {
	return slices.ContainsFunc(p.threads, func(t job.ThreadStack) bool { return slices.Contains(states, t.State) })
}

// pending reports whether a signal waits to be delivered to a thread, or to its process.
func pending(pid, tid int, sig unix.Signal) bool {
	return (mask(pid, tid, "SigPnd")|mask(pid, tid, "ShdPnd"))&(1<<(sig-1)) != 0
}

// mask returns a field of /proc/PID/task/TID/status that is a set of signals.
func mask(pid, tid int, field string) uint64 {
	data, err := os.ReadFile(procfs.Path(pid, filepath.Join("task", strconv.Itoa(tid), "status")))
	if err != nil {
		return 0
	}
	text, _ := procfs.Field(data, field)
	set, _ := strconv.ParseUint(text, 16, 64)
	return set
}
