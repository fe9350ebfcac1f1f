package stacktree

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// thread returns a thread with the functions of a stack, innermost first. Each function is in solver.c, at the
// line after the colon, or in a library if there is no colon.
func thread(state job.ProcessState, frames ...job.Frame) job.ThreadStack {
	return job.ThreadStack{PID: 10, TID: 10, State: state, Frames: frames}
}

func TestLoops(t *testing.T) {
	const file, mpi = "/home/u/solver.c", "/usr/lib/libmpich.so.12"
	start := native("main", file, 90)
	reduces := thread(job.ProcessRunning, native("PMPI_Allreduce", mpi, 0), native("solve", file, 34), start)
	sleeps := thread(job.ProcessSleeping, native("usleep", "../sysdeps/posix/usleep.c", 31), native("solve", file, 35), start)
	waits := thread(job.ProcessRunning, native("PMPI_Barrier", mpi, 0), native("solve", file, 40), start)
	inside := thread(job.ProcessRunning, native("??", mpi, 0), native("PMPI_Barrier", mpi, 0), native("solve", file, 40), start)
	probes := thread(job.ProcessRunning, native("PMPI_Iprobe", mpi, 0), native("solve", file, 38), start)
	spins := thread(job.ProcessRunning, native("smooth", file, 10), native("solve", file, 36), start)
	on := thread(job.ProcessRunning, native("smooth", file, 12), native("solve", file, 36), start)
	stripped := thread(job.ProcessRunning, native("opal_progress", "/usr/lib/libopen-pal.so.40", 0), native("??", "/usr/lib/libmpi.so", 0), start)
	other := thread(job.ProcessRunning, native("mca_btl_vader_poll", "/usr/lib/libopen-pal.so.40", 0), native("??", "/usr/lib/libmpi.so", 0), start)
	for _, c := range []struct {
		name  string
		looks [][]job.RankStack
		want  string
	}{
		{"all go round a loop", [][]job.RankStack{gang(reduces, sleeps), gang(sleeps, reduces)}, "ranks 0-1 in a loop in solve (solver.c)"},
		{"one was seen only once in it", [][]job.RankStack{gang(reduces, reduces), gang(sleeps, reduces)}, "ranks 0-1 in a loop in solve (solver.c)"},
		{"one goes round a loop, and one waits in the same function", [][]job.RankStack{gang(probes, waits), gang(sleeps, inside)},
			"rank 0 in a loop in solve (solver.c); rank 1 in MPI_Barrier (solver.c:40 solve)"},
		{"a calculation at one place", [][]job.RankStack{gang(spins), gang(on)}, "rank 0 in smooth (solver.c:12)"},
		{"the same at each look", [][]job.RankStack{gang(waits, sleeps), gang(inside, sleeps), gang(waits, sleeps)},
			"rank 0 in MPI_Barrier (solver.c:40 solve); rank 1 in usleep (solver.c:35 solve)"},
		{"inside of a library", [][]job.RankStack{gang(stripped), gang(other)}, "rank 0 in a communication library (mca_btl_vader_poll) (solver.c:90 main)"},
		{"stopped in the meantime", [][]job.RankStack{gang(sleeps), gang(stopped)}, "rank 0 stopped in do_signal_stop"},
		{"not read at the last look", [][]job.RankStack{gang(waits, waits), gang(waits, polling)}, "ranks 0-1 in MPI_Barrier (solver.c:40 solve)"},
		{"one look", [][]job.RankStack{gang(sleeps)}, "rank 0 in usleep (solver.c:35 solve)"},
		{"no look", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Text(Groups(c.looks...)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	if got := Odd(Groups(gang(reduces, sleeps), gang(sleeps, reduces)), nil); got.Ranks != nil || !strings.HasPrefix(got.Why, "all ranks are in a loop") {
		t.Errorf("got %+v of ranks that all go round one loop", got)
	}
}

// TestRunningAtTheSamePlace: two ranks are at the same place if only one of them runs.
func TestRunningAtTheSamePlace(t *testing.T) {
	runs, sleeps := deadlock, deadlock
	runs.State = job.ProcessRunning
	if got := Groups(gang(runs, sleeps)); len(got) != 1 {
		t.Errorf("got %q", Text(got))
	}
}

func TestShort(t *testing.T) {
	for function, want := range map[string]string{
		"main":                                "main",
		"<module>":                            "<module>",
		"Queue::wait_item()":                  "Queue::wait_item",
		"std::future<int>::get()":             "std::future::get",
		"(anonymous namespace)::load(int)":    "(anonymous namespace)::load",
		"void run<std::pair<int, int> >(int)": "run",
		"a::(anonymous namespace)::b(int)":    "a::(anonymous namespace)::b",
		"assemble() [clone ._omp_fn.0]":       "assemble",
		"solve [clone .constprop.0]":          "solve",
		"c10d::PrefixStore::wait(std::vector<std::__cxx11::basic_string<char>, std::allocator<int> > const&, std::chrono::duration<long> const&)": "c10d::PrefixStore::wait",
		"Tensor::size(int) const":   "Tensor::size",
		"Op::operator()(int) const": "Op::operator()(int) const",
		"f(void (*)(int))":          "f",
		"broken(":                   "broken(",
		"gdb::Queue::wait":          "gdb::Queue::wait",
	} {
		if got := short(function); got != want {
			t.Errorf("%q became %q, want %q", function, got, want)
		}
	}
}

func TestChildren(t *testing.T) {
	child := func(pid int, of job.ThreadStack) job.ThreadStack {
		of.PID, of.TID, of.Name, of.Main = pid, pid, "python3", false
		return of
	}
	stacks := gang(allreduce, pipe)
	for i := range stacks {
		stacks[i].Threads[0].PID, stacks[i].Threads[0].TID = 10+i, 10+i
	}
	second := child(20, deadlock)
	second.TID = 21 // another thread of it
	stacks[1].Threads = append(stacks[1].Threads, child(20, queue), second, child(22, pipe), child(23, stopped), child(24, sleeping))
	const want = "its process 23 (python3) is stopped by a signal; its process 20 (python3) is in queue.get (train.py:44 batch); and 1 more"
	if got := Children(stacks, []int{1}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, ranks := range [][]int{nil, {0}, {7}, {0, 1}} {
		if got := Children(stacks, ranks); got != "" {
			t.Errorf("got %q of ranks %v", got, ranks)
		}
	}
}

// TestStarted: a rank that waits for a program without symbols is at the place where it has started that
// program.
func TestStarted(t *testing.T) {
	tool := thread(job.ProcessSleeping, native("clock_nanosleep", "../sysdeps/unix/sysv/linux/clock_nanosleep.c", 71), native("??", "/usr/bin/sleep", 0))
	starts := job.ThreadStack{PID: 9, TID: 9, State: job.ProcessSleeping, Syscall: "wait4", Frames: []job.Frame{py("wait", "/usr/lib/python3.11/subprocess.py", 1264), py("load", "/home/u/train.py", 30)}}
	for _, c := range []struct {
		state job.ProcessState
		want  string
	}{
		{job.ProcessSleeping, "rank 0 in subprocess.wait (train.py:30 load)"},
		{job.ProcessRunning, "rank 0 in clock_nanosleep (clock_nanosleep.c:71)"},
	} {
		tool.State = c.state
		stacks := []job.RankStack{{Threads: []job.ThreadStack{tool, starts}}}
		stacks[0].Threads[0].Main = true
		if got := Text(Groups(stacks)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
