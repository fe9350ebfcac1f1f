package stacks

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// proc is one process of a rank.
type proc struct {
	pid     int
	start   uint64 // with pid, this identifies the process
	python  bool
	tool    job.StackTool
	why     string // why no better tool was used
	threads []job.ThreadStack
	sp      map[int]uint64 // the stack pointers of the threads that wait in the kernel, by TID
}

var states = map[byte]job.ProcessState{
	'R': job.ProcessRunning, 'S': job.ProcessSleeping, 'I': job.ProcessSleeping, 'D': job.ProcessDisk,
	'T': job.ProcessStopped, 't': job.ProcessTraced, 'Z': job.ProcessZombie, 'X': job.ProcessZombie,
}

// readTree reads the processes of a rank, the one that does its work first. A full reading has also
// system calls, which the kernel may not tell before a process has executed its program.
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

// worker returns the index of the process that does the work: behind a shell or another program that
// only waits for its single child, it is that child.
func worker(tree []proc, below map[int][]int) int {
	at := 0
	for at < len(tree) && len(below[tree[at].pid]) == 1 && waits(tree[at]) {
		child := below[tree[at].pid][0]
		next := slices.IndexFunc(tree, func(p proc) bool { return p.pid == child })
		if next < 0 {
			break
		}
		at = next
	}
	return at
}

// wrappers are programs that start another and wait for its end, not all in wait(2).
var wrappers = []string{"sh", "bash", "dash", "zsh", "ksh", "busybox", "timeout", "sudo", "env", "nice", "time", "strace", "script"}

// waits reports whether a process does nothing but wait for a child.
func waits(p proc) bool {
	main := p.threads[0]
	return len(p.threads) == 1 && main.State == job.ProcessSleeping &&
		(main.Wait == "do_wait" || main.Syscall == "wait4" || main.Syscall == "waitid" || slices.Contains(wrappers, main.Name))
}

func readProcess(pid int, full bool, most int) (p proc, ok bool) {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return p, false
	}
	p = proc{pid: pid, start: stat.Start, tool: job.StackProc, sp: map[int]uint64{}}
	exe, _ := os.Readlink(procfs.Path(pid, "exe")) // not readable once the main thread has ended
	if p.python = isPython(filepath.Base(exe)); exe == "" {
		p.python = isPython(stat.Name)
	}
	for _, tid := range threadIDs(pid, most) {
		if t, ok := p.readThread(tid, full); ok {
			p.threads = append(p.threads, t)
		}
	}
	return p, len(p.threads) > 0 // it may end meanwhile
}

// threadIDs returns the threads of a process in ascending order, but the main thread first, which
// has the PID as its ID.
func threadIDs(pid, most int) []int {
	dir, err := os.Open(procfs.Path(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error counts
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

// object says on what file a system call is whose first argument is a descriptor. The link's text
// is the kernel's own: no file system is asked.
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

var kernelFrame = regexp.MustCompile(`^\[<[0-9a-f]*>\] ([^+ ]+)`)

// kernelFrames reads /proc/PID/task/TID/stack, which only root may.
func kernelFrames(stack string) (frames []job.Frame) {
	for line := range strings.Lines(stack) {
		if m := kernelFrame.FindStringSubmatch(line); m != nil && len(frames) < maxFrames {
			frames = append(frames, job.Frame{Function: m[1], File: job.KernelFile, Native: true})
		}
	}
	return frames
}

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*(-[a-z]+)?( \(deleted\))?$`)

// isPython reports whether a program is a Python interpreter, by its name.
func isPython(name string) bool { return pythonName.MatchString(name) }

// same reports whether the process still exists.
func (p *proc) same() bool {
	stat, err := procfs.ReadStat(p.pid)
	return err == nil && stat.Start == p.start
}

// any reports whether a thread of the process is in one of some states.
func (p *proc) any(states ...job.ProcessState) bool {
	return slices.ContainsFunc(p.threads, func(t job.ThreadStack) bool { return slices.Contains(states, t.State) })
}

// pending reports whether a signal waits to be delivered to a thread, or to its process.
func pending(pid, tid int, sig unix.Signal) bool {
	return (mask(pid, tid, "SigPnd")|mask(pid, tid, "ShdPnd"))&(1<<(sig-1)) != 0
}

// mask returns a set of signals of a thread from /proc/PID/task/TID/status.
func mask(pid, tid int, field string) uint64 {
	data, err := os.ReadFile(procfs.Path(pid, filepath.Join("task", strconv.Itoa(tid), "status")))
	if err != nil {
		return 0
	}
	text, _ := procfs.Field(data, field)
	set, _ := strconv.ParseUint(text, 16, 64)
	return set
}
