package stacktree

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// kind says what a rank does if it is in a certain function.
type kind int

const (
	nothing    kind = iota
	collective      // all ranks of a group must call it; it has the same name on all of them
	wait            // it waits for other ranks, or for a GPU that may wait for other ranks
	progress        // a part of a communication library; the call itself is further out, or is not known
)

// These patterns match the functions of communication libraries. For MPI, they also match the functions of
// Fortran (mpi_allreduce_), the profiling interface (PMPI_Allreduce), and the functions that do not block,
// because a program may call these again and again to wait.
var (
	mpiCollective = pattern.New(`^(?i:p?mpi_)(?i:i?(?:all(?:reduce|gather|toall)|bcast|barrier|reduce|gather|scatter|scan|exscan|neighbor_)[a-z_]*|` +
		`init(?:_thread)?_?(?:f08_?)?|finalize_?|comm_(?:split|dup|create|free|spawn)[a-z_]*|win_(?:create|allocate|fence|free)[a-z_]*|` +
		`file_(?:open|close|set_view|[a-z_]*_all)[a-z_]*)$|^ompi_mpi_(?:init|finalize)$`)
	mpiWait        = pattern.New(`^(?i:p?mpi_)(?i:m?recv|s?send|rsend|bsend|sendrecv|probe|mprobe|wait|test|iprobe|win_)[a-z_]*$`)
	otherCalls     = pattern.New(`^p?nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Bcast|Reduce|AlltoAll|GroupEnd|CommInit|CommSplit|CommFinalize)\w*$|^p?shmem_(barrier|sync|broadcast|collect|alltoall|\w*reduce)\w*$|^gloo::(\w+)$`)
	otherWait      = pattern.New(`^p?nccl(Send|Recv)$|^p?shmem_\w*wait\w*$|^(cuda|hip)(Stream|Device|Event)Synchronize\b|^cu(Stream|Event|Ctx)Synchronize\b|^c10d::\w+::.*[wW]ait|^c10d::TCPStore::|^c10d::Reducer::finalize_backward\b|^at::cuda::CUDAEvent::synchronize`)
	inLibrary      = pattern.New(`^(opal_progress|ompi_request_\w*wait\w*|ompi_coll_\w+|mca_\w+|ucp_worker_\w*progress\w*|ucs_async\w*|uct_\w+|MPID[IU]?_\w+|MPIR_\w+|internal_\w*(Allreduce|Barrier|Bcast)\w*|psm2?_\w+|fi_cq_\w+)$`)
	torchCalls     = pattern.New(`^(all_reduce|all_gather\w*|_all_gather_base|reduce|reduce_scatter\w*|_reduce_scatter_base|broadcast\w*|barrier|monitored_barrier|gather\w*|scatter\w*|all_to_all\w*|init_process_group|new_group|destroy_process_group|_store_based_barrier|allreduce\w*|allgather\w*|alltoall\w*|join)$`)
	torchWait      = pattern.New(`^(wait|synchronize|recv|send|rendezvous|next_rendezvous|batch_isend_irecv)$`)
	torchDirectory = pattern.New(`/(torch/distributed|horovod|deepspeed/comm|torch/cuda)/`)
)

func kindOf(f job.Frame) kind {
	if !f.Native {
		switch {
		case !torchDirectory.Match(f.File):
			return nothing
		case torchCalls.Match(f.Function) && !strings.Contains(f.File, "/torch/cuda/"):
			return collective
		case torchWait.Match(f.Function):
			return wait
		}
		return nothing
	}
	switch name := f.Function; {
	case mpiCollective.Match(name), otherCalls.Match(name):
		return collective
	case mpiWait.Match(name), otherWait.Match(name):
		return wait
	case inLibrary.Match(name):
		return progress
	}
	return nothing
}

// networkCalls and networkFunctions are the system calls and the functions in which a program waits for data on
// sockets.
var (
	networkCalls = map[string]bool{"recvfrom": true, "recvmsg": true, "recvmmsg": true, "poll": true, "ppoll": true, "epoll_wait": true,
		"epoll_pwait": true, "epoll_pwait2": true, "accept": true, "accept4": true, "connect": true, "sendto": true, "sendmsg": true}
	networkFunctions = pattern.New(`^_*(?:libc_)?(?:recv|recvfrom|recvmsg|accept4?|connect|p?poll|epoll_p?wait|sock_(?:recv|accept|send|connect)\w*|select_poll_poll|select_epoll_poll|recv_into|uv__io_poll|SSL_(?:read|connect)|_ssl__SSLSocket_read\w*)$`)
)

// onNetwork reports whether a thread waits for data on sockets.
func onNetwork(t job.ThreadStack) bool {
	if t.Syscall != "" {
		return networkCalls[t.Syscall]
	}
	return slices.ContainsFunc(t.Frames[:min(len(t.Frames), 3)], func(f job.Frame) bool { return networkFunctions.Match(f.Function) })
}

// callName returns a name that is the same for all forms of a communication call.
func callName(f job.Frame) string {
	name := strings.TrimPrefix(short(f.Function), "ompi_") // PMPI_Finalize jumps to ompi_mpi_finalize
	if low := strings.ToLower(name); strings.HasPrefix(low, "mpi_") || strings.HasPrefix(low, "pmpi_") {
		rest := strings.TrimSuffix(strings.TrimSuffix(low[strings.Index(low, "mpi_")+4:], "_"), "_f08")
		if rest != "" {
			return "MPI_" + strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	if strings.HasPrefix(name, "pnccl") {
		return name[1:]
	}
	return name
}

// library and modules match files that are not the user's: libraries, the sources of the GNU C library,
// Python's own modules, and installed packages.
var (
	library = pattern.New(`\.so(\.[0-9.]+)?$|/include/c\+\+/|^\.\.?/(sysdeps|nptl|csu|elf|libio|malloc|stdlib|io|posix|socket|misc|time|signal|sunrpc|string|stdio-common)/|^\[`)
	modules = pattern.New(`/lib(64)?/python[23][0-9.]*/|/(site|dist)-packages/|^<frozen |\.zip/`)
)

// userFrame returns the index of the innermost frame of the user's program, or -1. In a Python program, this is
// the frame of a Python function.
func userFrame(frames []job.Frame) int {
	python := slices.ContainsFunc(frames, func(f job.Frame) bool { return !f.Native })
	return slices.IndexFunc(frames, func(f job.Frame) bool {
		return f.Native != python && !modules.Match(f.File) && (python || !library.Match(f.File) && !plumbing(f.Function))
	})
}

var plumbingName = pattern.New(`^(\?\?|_start|__libc_start\w*|start_thread|__?clone3?|_?Py[A-Z_]\w*|cfunction_\w+|method_vectorcall\w*|__restore_rt|<signal handler called>)$`)

// plumbing reports whether a function tells the user nothing. It has no name, or it belongs to Python's
// interpreter or to the code that starts programs and threads.
func plumbing(function string) bool { return plumbingName.Match(function) }

// place is where a thread is.
type place struct {
	where  string
	call   string // the name of the communication call; "" if the thread is in none
	kind   kind
	frames []job.Frame // from the frame that where names to the outermost one
}

// placeOf finds the frame of a thread that tells the user most.
func placeOf(t job.ThreadStack) place {
	frames := t.Frames
	if len(frames) > 0 && frames[0].File == job.KernelFile {
		return place{where: cmp.Or(callOf(t), "the kernel") + " (kernel: " + frames[0].Function + ")"}
	}
	// The outermost communication call is the one that the user knows.
	for i := len(frames) - 1; i >= 0; i-- {
		if k := kindOf(frames[i]); k == collective || k == wait {
			call := callName(frames[i])
			return place{where: call + caller(frames[i+1:]), call: call, kind: k, frames: frames[i:]}
		}
	}
	for i := len(frames) - 1; i >= 0; i-- {
		if kindOf(frames[i]) == progress {
			return place{where: "a communication library (" + frames[i].Function + ")" + caller(frames[i+1:]), kind: progress, frames: frames[i:]}
		}
	}
	if i := userFrame(frames); i >= 0 {
		for j := i - 1; j >= 0; j-- { // what the user's function has called
			if !plumbing(frames[j].Function) {
				return place{where: operation(frames[j], t) + caller(frames[i:]), frames: frames[j:]}
			}
		}
		if call := callOf(t); call != "" {
			return place{where: call + caller(frames[i:]), frames: frames[i:]}
		}
		return place{where: short(frames[i].Function) + at(frames[i]), frames: frames[i:]}
	}
	if i := slices.IndexFunc(frames, func(f job.Frame) bool { return !f.Native }); i >= 0 { // Python's own modules
		return place{where: operation(frames[i], t) + at(frames[i]), frames: frames[i:]}
	}
	for i, f := range frames {
		if !plumbing(f.Function) {
			return place{where: operation(f, t) + at(f), frames: frames[i:]}
		}
	}
	if where := cmp.Or(callOf(t), t.Wait); where != "" || t.State != job.ProcessRunning {
		return place{where: where, frames: frames}
	}
	return place{where: running, frames: frames}
}

// running is the description of a thread that runs, if nothing more is known.
const running = "a loop or a calculation"

// callOf describes the system call of a thread, as in "read of a pipe". It is "" if there is none.
func callOf(t job.ThreadStack) string {
	if t.Syscall == "" || t.On == "" {
		return t.Syscall
	}
	return t.Syscall + " of " + t.On
}

// operation names a function of a library. It names a system call together with the file on which it works, and
// a Python function together with its module.
func operation(f job.Frame, t job.ThreadStack) string {
	name := strings.TrimPrefix(strings.TrimPrefix(short(f.Function), "__libc_"), "__")
	switch {
	case !f.Native:
		return strings.TrimSuffix(path.Base(f.File), ".py") + "." + f.Function
	case t.On != "" && t.Syscall != "" && (strings.TrimSuffix(name, "64") == strings.TrimSuffix(t.Syscall, "64") || name+"from" == t.Syscall):
		return callOf(t)
	}
	return name
}

// caller names the innermost of the user's functions among frames, as in " (train.py:120 average)".
func caller(frames []job.Frame) string {
	i := userFrame(frames)
	switch {
	case i < 0:
		return ""
	case frames[i].File == "" || frames[i].Line == 0:
		return " (" + short(frames[i].Function) + ")"
	}
	return " (" + line(frames[i]) + " " + short(frames[i].Function) + ")"
}

func at(f job.Frame) string {
	if f.File == "" {
		return ""
	}
	return " (" + line(f) + ")"
}

func line(f job.Frame) string {
	if f.Line == 0 {
		return path.Base(f.File)
	}
	return path.Base(f.File) + ":" + strconv.Itoa(f.Line)
}
