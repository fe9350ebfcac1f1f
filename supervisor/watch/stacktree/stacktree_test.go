package stacktree

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func native(function, file string, line int) job.Frame {
	return job.Frame{Function: function, File: file, Line: line, Native: true}
}

func py(function, file string, line int) job.Frame {
	return job.Frame{Function: function, File: file, Line: line}
}

// These stacks are as the tools print them, innermost frame first.
var (
	allreduce = job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{
		native("MPIDI_progress_test", "/usr/lib/x86_64-linux-gnu/libmpich.so.12", 0), native("MPIR_Allreduce", "/usr/lib/x86_64-linux-gnu/libmpich.so.12", 0),
		native("PMPI_Allreduce", "/usr/lib/x86_64-linux-gnu/libmpich.so.12", 0), native("__pyx_pw_6mpi4py_3MPI_4Comm_Allreduce", "/usr/lib/python3/dist-packages/mpi4py/MPI.so", 0),
		py("average", "/home/u/train.py", 120), py("<module>", "/home/u/train.py", 140)}}
	reading = job.ThreadStack{State: job.ProcessSleeping, Syscall: "read", On: "/data/x.fifo", Frames: []job.Frame{
		native("__libc_read", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0), py("next", "/home/u/loader.py", 88), py("<module>", "/home/u/train.py", 110)}}
	bcast = job.ThreadStack{State: job.ProcessSleeping, Syscall: "epoll_wait", Frames: []job.Frame{
		native("epoll_wait", "../sysdeps/unix/sysv/linux/epoll_wait.c", 30), native("opal_progress", "/usr/lib/libopen-pal.so.40", 0),
		native("MPI_Bcast", "/usr/lib/libmpi.so.40", 0), native("main", "/home/u/solver.c", 31), native("__libc_start_call_main", "../csu/libc-start.c", 360)}}
	elsewhere = job.ThreadStack{State: job.ProcessSleeping, Syscall: "epoll_wait", Frames: []job.Frame{
		native("epoll_wait", "../sysdeps/unix/sysv/linux/epoll_wait.c", 30), native("opal_progress", "/usr/lib/libopen-pal.so.40", 0),
		native("MPI_Bcast", "/usr/lib/libmpi.so.40", 0), native("main", "/home/u/solver.c", 57), native("__libc_start_call_main", "../csu/libc-start.c", 360)}}
	torch = job.ThreadStack{State: job.ProcessSleeping, Syscall: "futex", Frames: []job.Frame{
		native("pthread_cond_wait", "/usr/lib/libc.so.6", 0), native("c10d::ProcessGroupGloo::AsyncWork::wait(std::chrono::duration<long>)", "/usr/lib/libtorch_cpu.so", 0),
		py("all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 2050), py("wrapper", "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", 75),
		py("average", "/home/u/train.py", 12)}}
	deadlock = job.ThreadStack{State: job.ProcessSleeping, Syscall: "futex", Frames: []job.Frame{
		native("futex_wait", "../sysdeps/nptl/futex-internal.h", 146), native("__lll_lock_wait", "./nptl/lowlevellock.c", 49),
		native("pthread_mutex_lock", "./nptl/pthread_mutex_lock.c", 93), native("lock_b", "/home/u/main.c", 31), native("main", "/home/u/main.c", 60)}}
	spin  = job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{native("iterate", "/home/u/solver.c", 77), native("main", "/home/u/solver.c", 40)}}
	queue = job.ThreadStack{State: job.ProcessSleeping, Syscall: "futex", Frames: []job.Frame{
		py("wait", "/usr/lib/python3.11/threading.py", 320), py("get", "/usr/lib/python3.11/queue.py", 171), py("batch", "/home/u/train.py", 44)}}
	sleeping = job.ThreadStack{State: job.ProcessSleeping, Syscall: "clock_nanosleep", Frames: []job.Frame{py("evaluate", "/home/u/train.py", 66)}}
	gpu      = job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{
		native("??", "/usr/lib/libcuda.so.1", 0), native("cudaStreamSynchronize", "/usr/lib/libcudart.so.12", 0), native("at::native::item(at::Tensor const&)", "/opt/libtorch_cuda.so", 0),
		py("step", "/home/u/train.py", 99)}}
	pipe    = job.ThreadStack{State: job.ProcessSleeping, Syscall: "read", On: "a pipe", Wait: "pipe_read"}
	polling = job.ThreadStack{State: job.ProcessRunning}
	frozen  = job.ThreadStack{State: job.ProcessDisk, Syscall: "read", On: "/mnt/frozen/data", Wait: "fuse_wait", Frames: []job.Frame{
		native("request_wait_answer", job.KernelFile, 0), native("fuse_simple_request", job.KernelFile, 0)}}
	stopped  = job.ThreadStack{State: job.ProcessStopped, Wait: "do_signal_stop"}
	fortran  = job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{native("mpi_allreduce_", "/usr/lib/libmpi_mpifh.so.40", 0), native("MAIN__", "/home/u/a.f90", 9)}}
	stripped = job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{native("??", "/usr/lib/libfabric.so.1", 0), native("opal_progress", "/usr/lib/libopen-pal.so.40", 0), native("??", "/home/u/a.out", 0)}}
)

func gang(threads ...job.ThreadStack) (stacks []job.RankStack) {
	for r, t := range threads {
		t.Main = true
		s := job.RankStack{Rank: r, Threads: []job.ThreadStack{t}}
		if t.State == "" {
			s.Threads = nil
		}
		stacks = append(stacks, s)
	}
	return stacks
}

func TestWhere(t *testing.T) {
	for _, c := range []struct {
		name   string
		thread job.ThreadStack
		want   string
		waits  bool
	}{
		{"mpi4py", allreduce, "MPI_Allreduce (train.py:120 average)", true},
		{"C with Open MPI", bcast, "MPI_Bcast (solver.c:31 main)", true},
		{"Fortran", fortran, "MPI_Allreduce (a.f90:9 MAIN__)", true},
		{"no symbols", stripped, "a communication library (opal_progress)", true},
		{"torch with gloo", torch, "all_reduce (train.py:12 average)", true},
		{"GPU", gpu, "cudaStreamSynchronize (train.py:99 step)", true},
		{"a FIFO", reading, "read of /data/x.fifo (loader.py:88 next)", false},
		{"a mutex", deadlock, "pthread_mutex_lock (main.c:31 lock_b)", false},
		{"a loop", spin, "iterate (solver.c:77)", false},
		{"a queue", queue, "queue.get (train.py:44 batch)", false},
		{"sleep, without frames of C", sleeping, "clock_nanosleep (train.py:66 evaluate)", false},
		{"only /proc", pipe, "read of a pipe", false},
		{"a frozen mount", frozen, "read of /mnt/frozen/data (kernel: request_wait_answer)", false},
		{"stopped", stopped, "do_signal_stop", false},
		{"nothing known", job.ThreadStack{}, "", false},
		{"a tail call of Open MPI", job.ThreadStack{State: job.ProcessRunning, Frames: []job.Frame{native("ompi_mpi_finalize", "/usr/lib/libmpi.so.40", 0), native("main", "/home/u/a.c", 9)}}, "MPI_Finalize (a.c:9 main)", true},
		{"DistributedDataParallel", job.ThreadStack{State: job.ProcessSleeping, Frames: []job.Frame{
			native("pthread_cond_wait", "/usr/lib/libc.so.6", 0), native("c10d::Reducer::finalize_backward()", "/usr/lib/libtorch_cpu.so", 0),
			py("backward", "/usr/lib/python3/dist-packages/torch/_tensor.py", 488), py("step", "/home/u/train.py", 18)}}, "c10d::Reducer::finalize_backward (train.py:18 step)", true},
		{"the standard library of C++", job.ThreadStack{State: job.ProcessSleeping, Frames: []job.Frame{
			native("syscall", "../sysdeps/unix/sysv/linux/x86_64/syscall.S", 38), native("std::__basic_future<int>::_M_get_result() const", "/usr/include/c++/12/future", 720),
			native("std::future<int>::get()", "/usr/include/c++/12/future", 806), native("load()", "/home/u/a.cpp", 22)}}, "std::future::get (a.cpp:22 load)", false},
		{"the end of Python", job.ThreadStack{State: job.ProcessSleeping, Syscall: "futex", Frames: []job.Frame{
			native("futex_wait", "./nptl/futex-internal.c", 57), py("_shutdown", "/usr/lib/python3.11/threading.py", 1583)}}, "threading._shutdown (threading.py:1583)", false},
		{"a lock of a file", job.ThreadStack{State: job.ProcessSleeping, Syscall: "fcntl", On: "/data/lock", Frames: []job.Frame{
			native("__libc_fcntl64", "../sysdeps/unix/sysv/linux/fcntl64.c", 51), native("save", "/home/u/a.c", 40)}}, "fcntl of /data/lock (a.c:40 save)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups := Groups(gang(c.thread))
			if len(groups) != 1 || groups[0].Where != c.want || groups[0].Collective != c.waits {
				t.Errorf("got %+v, want %q", groups, c.want)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	// Ranks that wait in the same call are one group wherever in the library they are.
	inner := allreduce
	inner.Frames, inner.State = inner.Frames[1:], job.ProcessSleeping
	later := spin
	later.Frames = []job.Frame{native("iterate", "/home/u/solver.c", 79), spin.Frames[1]}
	all := gang(allreduce, inner, allreduce, reading, inner, allreduce, spin, later)
	slices.Reverse(all)
	groups := Groups(all)
	const want = "ranks 0-2,4-5 in MPI_Allreduce (train.py:120 average); ranks 6-7 in iterate (solver.c:77); rank 3 in read of /data/x.fifo (loader.py:88 next)"
	if got := Text(groups); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if !reflect.DeepEqual(groups[0].Frames, inner.Frames) {
		t.Errorf("got %+v as what the group has in common", groups[0].Frames)
	}
	// The same function called from another line, or in a rank that cannot run, is another group.
	other := allreduce
	other.Frames = slices.Clone(other.Frames)
	other.Frames[4].Line = 121
	halted := allreduce
	halted.State = job.ProcessStopped
	const apart = "ranks 0,3 in MPI_Allreduce (train.py:120 average); rank 1 in MPI_Allreduce (train.py:121 average); rank 2 stopped in MPI_Allreduce (train.py:120 average)"
	if got := Text(Groups(gang(allreduce, other, halted, allreduce))); got != apart {
		t.Errorf("got %q", got)
	}
	// If the main thread has ended, another thread says where the rank is.
	ended := gang(job.ThreadStack{State: job.ProcessZombie})
	ended[0].Threads = append(ended[0].Threads, reading)
	if got := Groups(ended)[0]; got.Where != "read of /data/x.fifo (loader.py:88 next)" || got.State != job.ProcessSleeping {
		t.Errorf("got %+v", got)
	}
	if got := Groups(nil); len(got) != 0 {
		t.Errorf("got %+v of no ranks", got)
	}
}

func steps(at ...int64) (pulses []Rank) {
	for r, s := range at {
		pulses = append(pulses, Rank{Pulse: job.Pulse{Rank: r, Progress: &job.Progress{Step: s}}})
	}
	return pulses
}

// phases returns ranks that are in the given phases.
func phases(in ...job.RankPhase) (pulses []Rank) {
	for r, phase := range in {
		pulses = append(pulses, Rank{Pulse: job.Pulse{Rank: r, Phase: phase}})
	}
	return pulses
}

// working returns ranks, of which some are busy and the others asleep.
func working(busy ...bool) (pulses []Rank) {
	for r, b := range busy {
		pulses = append(pulses, Rank{Pulse: job.Pulse{Rank: r}, Busy: b, Asleep: !b})
	}
	return pulses
}

func state(rank int, s job.ProcessState) Rank { return Rank{Pulse: job.Pulse{Rank: rank, State: s}} }

func TestOdd(t *testing.T) {
	unknown := job.ThreadStack{}
	inInit := phases(job.PhaseInit, job.PhaseInit, job.PhaseUnknown, job.PhaseInit)
	atEnd := phases(job.PhaseBarrier, job.PhaseWorking, job.PhaseBarrier, job.PhaseLeft)
	for _, c := range []struct {
		name   string
		stacks []job.RankStack
		pulses []Rank
		want   []int
		least  float64 // confidence
		most   float64
		why    string // a part of it
	}{
		{"stopped", gang(allreduce, allreduce, stopped, allreduce), nil, []int{2}, 0.95, 1, "stopped by a signal"},
		{"stopped, and another outside", gang(allreduce, reading, stopped, allreduce), nil, []int{2}, 0.95, 1, "stopped"},
		{"stopped, by the pulse alone", nil, []Rank{state(0, ""), state(1, job.ProcessStopped)}, []int{1}, 0.95, 1, "stopped"},
		{"no longer stopped", gang(allreduce, reading), []Rank{state(0, job.ProcessStopped)}, []int{1}, 0.85, 1, "read"},
		{"all stopped", gang(stopped, stopped), nil, nil, 0, 0, "ranks 0-1 are stopped"},
		{"a frozen mount", gang(allreduce, frozen, allreduce), nil, []int{1}, 0.9, 1, "/mnt/frozen/data"},
		{"two on a frozen mount", gang(allreduce, frozen, frozen, allreduce, allreduce), nil, []int{1, 2}, 0.9, 1, "are hanging in the kernel"},
		{"never entered", gang(allreduce, allreduce, allreduce, reading), nil, []int{3}, 0.9, 0.9, "rank 3 is in read of /data/x.fifo (loader.py:88 next), while ranks 0-2 wait for other ranks in MPI_Allreduce"},
		{"never entered, and behind", gang(allreduce, allreduce, allreduce, reading), steps(7, 7, 7, 6), []int{3}, 0.95, 0.95, "read"},
		{"deadlock", gang(deadlock, bcast, bcast, bcast), nil, []int{0}, 0.9, 1, "lock_b"},
		{"a loop of one of two", gang(bcast, spin), nil, []int{1}, 0.9, 1, "iterate"},
		{"most outside", gang(torch, queue, queue, queue), nil, []int{1, 2, 3}, 0.5, 0.5, "queue.get"},
		{"outside, others in two calls", gang(allreduce, bcast, allreduce, spin), nil, []int{3}, 0.75, 0.75, "iterate"},
		{"a rank that is not known does not count", gang(allreduce, allreduce, unknown, reading), nil, []int{3}, 0.9, 1, "read"},
		{"mismatch", gang(allreduce, allreduce, bcast, allreduce), nil, []int{2}, 0.8, 0.8, "rank 2 is in MPI_Bcast (solver.c:31 main), while ranks 0-1,3 wait in MPI_Allreduce"},
		{"the same call from another place", gang(bcast, bcast, bcast, elsewhere), nil, []int{3}, 0.55, 0.55, "rank 3 is in MPI_Bcast (solver.c:57 main), while most ranks are in MPI_Bcast (solver.c:31 main)"},
		{"mismatch of halves", gang(allreduce, bcast), nil, nil, 0.5, 0.5, "different calls"},
		{"GPU of one rank never joined", gang(gpu, gpu, gpu, sleeping), nil, []int{3}, 0.9, 1, "evaluate"},
		{"behind", gang(allreduce, allreduce, allreduce), steps(9, 8, 9), []int{1}, 0.8, 0.8, "rank 1 has not reached step 9"},
		{"in MPI_Init, by the pulses", gang(polling, polling, pipe, polling), inInit, []int{2}, 0.9, 0.9, "rank 2 is in read of a pipe, while ranks 0-1,3 wait for other ranks"},
		{"in MPI_Init, by the pulses alone", nil, inInit, []int{2}, 0.9, 0.9, "rank 2 has not called MPI_Init, while ranks 0-1,3 wait"},
		{"in MPI_Finalize, by the pulses alone", nil, atEnd, []int{1}, 0.9, 0.9, "rank 1 is not in MPI_Finalize"},
		{"in MPI_Finalize, where its library has no symbols", gang(spin, reading, polling, spin), atEnd, []int{1}, 0.9, 0.9, "rank 1 is in read of /data/x.fifo"},
		{"behind, and others without steps", gang(allreduce, allreduce, allreduce, allreduce), steps(9, 8, 9), []int{1}, 0.6, 0.6, "rank 1 has not reached step 9"},
		{"two behind, at different steps", nil, steps(9, 8, 9, 9, 7, 9), []int{1, 4}, 0.8, 0.8, "ranks 1,4 have not reached step 9, which most ranks have"},
		{"at many steps", nil, steps(1, 2, 3, 4), nil, 0, 0, "no rank stands out"},
		{"one sleeps", nil, working(true, true, false), []int{2}, 0.6, 0.6, "rank 2 sleeps, while the others use CPU time"},
		{"one computes", nil, working(false, true, false), []int{1}, 0.6, 0.6, "rank 1 uses CPU time, while the others sleep"},
		{"half of them sleep", nil, working(false, true), nil, 0, 0, "no rank stands out"},
		{"only /proc", gang(polling, polling, polling, pipe), nil, []int{3}, 0.55, 0.55, "read of a pipe"},
		{"a stack that could not be read", gang(allreduce, allreduce, allreduce, polling), nil, []int{3}, 0.7, 0.7, "rank 3 is in a loop or a calculation, while ranks 0-2 wait for other ranks in MPI_Allreduce"},
		{"another place, no library known", gang(spin, spin, spin, deadlock), nil, []int{3}, 0.55, 0.55, "while most ranks are in iterate"},
		{"all the same", gang(allreduce, allreduce), nil, nil, 0, 0, "all ranks are in MPI_Allreduce (train.py:120 average)"},
		{"all the same, at one step", gang(allreduce, allreduce), steps(3, 3), nil, 0, 0, "all ranks are in"},
		{"nothing known", gang(unknown, unknown), nil, nil, 0, 0, "all ranks are at an unknown place"},
		{"no ranks", nil, nil, nil, 0, 0, "no rank stands out"},
		{"the only rank", gang(reading), nil, nil, 0, 0, "rank 0 is in read of /data/x.fifo (loader.py:88 next)"},
		{"each elsewhere", gang(queue, reading), nil, nil, 0, 0, "no rank stands out: rank 0 in queue.get (train.py:44 batch); rank 1 in read of /data/x.fifo (loader.py:88 next)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Odd(Groups(c.stacks), c.pulses)
			if !slices.Equal(got.Ranks, c.want) || got.Confidence < c.least || got.Confidence > c.most || !strings.Contains(got.Why, c.why) {
				t.Errorf("got %+v, want %v with %v to %v and %q", got, c.want, c.least, c.most, c.why)
			}
		})
	}
}
