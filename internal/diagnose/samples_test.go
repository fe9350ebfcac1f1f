package diagnose

import "strings"

// raise is the traceback of an exception in a function of train.py with that
// source line.
func raise(exception string, source ...string) string {
	src := "step(batch)"
	if len(source) > 0 {
		src = source[0]
	}
	return "Traceback (most recent call last):\n  File \"/home/ana/job/train.py\", line 88, in step\n    " + src + "\n" + exception
}

// samples has, for each signature, texts on stderr that must give it (yes) and
// texts much like them that must not (no). A text beginning with "kernel: " is
// a record of the host of a rank that was killed, one with "segv: " of one
// that had a segmentation fault; one with "unstarted: " why a
// rank could not be started.
var samples = map[string]struct{ yes, no []string }{
	"too-few-ranks": {
		yes: []string{"train.py: error: requires at least 4 processes", raise("ValueError: world size must be 4, not 2")},
		no:  []string{"train.py: error: requires at least 2 processes", "the gang has 4 processes"},
	},
	"missing-file": {
		yes: []string{
			raise("FileNotFoundError: [Errno 2] No such file or directory: '/data/x.csv'", "open(path)"),
			raise("FileNotFoundError: /data/x.csv not found."),
			raise("OSError: [Errno 2] No such file or directory: '/data/x.csv'"),
			"cat: /data/x.csv: No such file or directory",
			"ERROR: LoadError: SystemError: opening file \"/data/x.csv\": No such file or directory\nStacktrace:\n [1] systemerror\nin expression starting at /home/ana/job/a.jl:3",
			"At line 3 of file read.f90 (unit = 10, file = '')\nFortran runtime error: File 'x.csv' does not exist",
			"terminate called after throwing an instance of 'std::runtime_error'\n  what():  cannot open /data/x.csv: No such file or directory",
			"At line 2 of file read.f90 (unit = 10)\nFortran runtime error: Cannot open file 'grid.dat': No such file or directory",
			"ERROR on proc 0: Cannot open input script in.melt: No such file or directory (src/lammps.cpp:520)\nLast command: (unknown)",
		},
		no: []string{
			raise("FileNotFoundError: [Errno 2] No such file or directory: '/out/x.csv'", "with open(path, \"w\") as f:"),
			"./a.out: error while loading shared libraries: libx.so: cannot open shared object file: No such file or directory",
			"/data/x.csv: No such file or directory\n" + strings.Repeat("step 1 loss 2\n", 40),
			"ERROR: cannot find a decomposition of the input for 1 rank",
		},
	},
	"script-missing": {
		yes: []string{"/usr/bin/python3: can't open file '/home/ana/job/trian.py': [Errno 2] No such file or directory"},
		no:  []string{"warning: the editor can't open files of that kind"},
	},
	"not-a-file": {
		yes: []string{raise("IsADirectoryError: [Errno 21] Is a directory: '/data'", "open(path)")},
		no:  []string{raise("NotADirectoryError: [Errno 20] Not a directory: '/data/x/y'", "open(path)")},
	},
	"argparse": {
		yes: []string{
			"usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rate 0.1",
			"usage: train.py [-h]\ntrain.py: error: the following arguments are required: --data",
			"Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option: --learning-rate",
			"./a.out: unrecognized option '--fast'", "./a.out: invalid option -- 'x'",
			"FATAL Flags parsing error:\n  Unknown command line flag 'fast'. Did you mean: last ?",
			"error: unexpected argument '--fast' found",
		},
		no: []string{"error: the argument is over, nobody won", "usage: train.py [-h] [--lr LR]"},
	},
	"bad-config": {
		yes: []string{
			raise("omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct"),
			"Could not override 'optim.lrr'.\nTo append to your config use +optim.lrr=0.1\nKey 'lrr' is not in struct",
		},
		no: []string{raise("AttributeError: 'Config' object has no attribute 'lrr'")},
	},
	"bad-json": {
		yes: []string{raise("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)")},
		no:  []string{raise("ValueError: the JSON lacks a name")},
	},
	"bad-format": {
		yes: []string{
			raise("yaml.scanner.ScannerError: mapping values are not allowed here"),
			raise("pandas.errors.ParserError: Error tokenizing data. C error: Expected 5 fields in line 3, saw 6"),
			raise("ValueError: could not convert string to float: 'n/a'"),
			raise("OSError: Unable to open file (file signature not found)", "h5py.File(data)"),
			"At line 9 of file read.f90 (unit = 10, file = 'x.dat')\nFortran runtime error: End of file",
		},
		no: []string{raise("ValueError: could not find the string")},
	},
	"bad-encoding": {
		yes: []string{raise("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 3: invalid continuation byte")},
		no:  []string{"UnicodeWarning: some characters could not be decoded, and were replaced"},
	},
	"bad-image": {
		yes: []string{raise("PIL.UnidentifiedImageError: cannot identify image file '/data/1.jpg'"), raise("OSError: image file is truncated (3 bytes not processed)")},
		no:  []string{"PIL: image file is truncated, loading what there is\n" + raise("KeyError: 'x'")},
	},
	"bad-archive": {
		yes: []string{
			raise("zipfile.BadZipFile: File is not a zip file", "zipfile.ZipFile(data)"),
			raise("gzip.BadGzipFile: Not a gzipped file (b'ab')", "gzip.open(data)"),
			raise("_pickle.UnpicklingError: pickle data was truncated", "pickle.load(f)"),
			raise("EOFError: Compressed file ended before the end-of-stream marker was reached", "f.read()"),
		},
		no: []string{raise("_pickle.UnpicklingError: pickle data was truncated", "torch.load(f)"), raise("EOFError: EOF when reading a line", "input()")},
	},
	"unknown-dataset": {
		yes: []string{
			raise("OSError: gpt-22 is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"),
			raise("datasets.exceptions.DatasetNotFoundError: Dataset 'imbd' doesn't exist on the Hub or cannot be accessed."),
			raise("huggingface_hub.utils._errors.RepositoryNotFoundError: 404 Client Error. (Request ID: 1) Repository Not Found for url: https://huggingface.co/x/y"),
		},
		no: []string{raise("OSError: gpt2 is a local folder without a config")},
	},
	"empty-dataset": {
		yes: []string{raise("ValueError: num_samples should be a positive integer value, but got num_samples=0"), raise("RuntimeError: Found 0 files in subfolders of: /data")},
		no:  []string{raise("ValueError: num_workers should be a positive integer")},
	},
	"torch-shape-mismatch": {
		yes: []string{
			raise("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x32 and 64x10)"),
			raise("RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
			raise("ValueError: operands could not be broadcast together with shapes (3,) (4,)"),
			raise("RuntimeError: shape '[2, 3]' is invalid for input of size 7"),
			raise("ValueError: shapes (2,3) and (4,5) not aligned: 3 (dim 1) != 4 (dim 0)"),
		},
		no: []string{raise("ValueError: the shape of things to come"), "warning: shape mismatch, padded\n" + raise("KeyError: 'x'")},
	},
	"torch-device-mismatch": {
		yes: []string{
			raise("RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
			raise("RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"),
		},
		no: []string{raise("RuntimeError: Input type (double) and bias type (float) should be the same")},
	},
	"torch-dtype-mismatch": {
		yes: []string{
			raise("RuntimeError: expected scalar type Float but found Double"), raise("RuntimeError: mat1 and mat2 must have the same dtype"),
			raise("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'"), raise("RuntimeError: Input type (double) and bias type (float) should be the same"),
		},
		no: []string{raise("NotImplementedError: the scalar type is for you to choose")},
	},
	"torch-target-range": {
		yes: []string{raise("IndexError: Target 11 is out of bounds."), raise("IndexError: index out of range in self")},
		no:  []string{raise("IndexError: list index out of range")},
	},
	"torch-autograd": {
		yes: []string{
			raise("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"), raise("RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors)"),
			raise("RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [3]]"),
		},
		no: []string{raise("RuntimeError: the graph has no edges")},
	},
	"ddp-unused-parameters": {
		yes: []string{raise("RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.")},
		no:  []string{"UserWarning: find_unused_parameters=True was specified, but did not find any unused parameters in the forward pass\n" + raise("KeyError: 'x'")},
	},
	"torch-state-dict": {
		yes: []string{raise("RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"fc.weight\".")},
		no:  []string{raise("KeyError: 'state_dict'")},
	},
	"torch-map-location": {
		yes: []string{raise("RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.")},
		no:  []string{raise("RuntimeError: cannot deserialize the object")},
	},
	"torch-fork-cuda": {
		yes: []string{raise("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method")},
		no:  []string{raise("RuntimeError: the forked subprocess is gone")},
	},
	"cuda-ordinal": {
		yes: []string{raise("RuntimeError: CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported")},
		no:  []string{raise("ValueError: invalid ordinal number")},
	},
	"cuda-device-assert": {
		yes: []string{
			"../aten/src/ATen/native/cuda/Loss.cu:257: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0 && t < n_classes` failed.",
		},
		no: []string{"a.out: x.cu:5: main: Assertion `n > 0' failed."},
	},
	"device-assertion": {
		yes: []string{
			raise("RuntimeError: CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."),
			"kernels.cu:31: scale: block: [0,0,0], thread: [1,0,0] Assertion `n > 0` failed.",
		},
		no: []string{"../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: [0,0,0], thread: [1,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n" + raise("RuntimeError: CUDA error: device-side assert triggered")},
	},
	"nccl-duplicate-gpu": {
		yes: []string{raise("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.18.6\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000")},
		no:  []string{"NCCL INFO no duplicate GPUs\n" + raise("KeyError: 'x'")},
	},
	"collective-mismatch": {
		yes: []string{
			"terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. 8 vs 4",
			raise("RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 1 is running collective: CollectiveFingerPrint(OpType=BROADCAST)."),
		},
		no: []string{raise("RuntimeError: the ranks have a mismatch of names")},
	},
	"open-files-limit": {
		yes: []string{raise("OSError: [Errno 24] Too many open files: '/data/1.bin'"), raise("RuntimeError: received 0 items of ancdata")},
		no:  []string{raise("OSError: the file is open too long")},
	},
	"process-limit": {
		yes: []string{
			raise("RuntimeError: can't start new thread"),
			raise("BlockingIOError: [Errno 11] Resource temporarily unavailable", "self.pid = _fork_exec("),
			"\nlibgomp: Thread creation failed: Resource temporarily unavailable",
			"OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 8: Resource temporarily unavailable\nOpenBLAS blas_thread_init: RLIMIT_NPROC 100 current, 100 max\n" + raise("KeyboardInterrupt"),
			"OMP: Error #34: System unable to allocate necessary resources for OMP thread:\nOMP: System error #11: Resource temporarily unavailable\nOMP: Hint Try decreasing the value of OMP_NUM_THREADS.",
			"run.sh: fork: retry: Resource temporarily unavailable\nrun.sh: fork: Resource temporarily unavailable",
			"terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable",
			"thread 'main' panicked at src/main.rs:3:5:\nfailed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
			"ERROR: could not start 64 threads: Resource temporarily unavailable",
			"unstarted: fork/exec /usr/bin/train: resource temporarily unavailable",
		},
		no: []string{
			raise("RuntimeError: the thread did not start with a T"),
			raise("BlockingIOError: [Errno 11] Unable to open file (unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')", "h5py.File(data)"),
			"recv: Resource temporarily unavailable",
		},
	},
	"program-error": {
		yes: []string{"ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:438)\nLast command: run 100", "main: fatal error: the sum is wrong"},
		no: []string{
			"ERROR: Unrecognized pair style 'foo'", "relative error = 1e-3", "error: 0.0012", "0 errors, 2 warnings",
			"Error: lost connection to rank 3", raise("KeyError: 'a'") + "\nERROR: the training failed",
			"Error: the sum is wrong\nretrying\n" + strings.Repeat("step 3 loss 2\n", 3),
		},
	},
	"told-to-end": {
		yes: []string{"ERROR: received signal 15, saving", "fatal: interrupted by the user"},
		no:  []string{"ERROR: the run was terminated: the sum is wrong"},
	},
	"program-input": {
		yes: []string{
			"ERROR: Unrecognized pair style 'foo' (src/force.cpp:275)\nLast command: pair_style foo",
			" %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\n     Error in routine read_namelists (1):\n      bad line in namelist &electrons: \" conv_thrr=1d-8\"\n %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%",
			"Error in user input:\nInvalid command-line options\n    Unknown command-line option -nosuch",
		},
		no: []string{"ERROR: the sum is wrong", "Error: invalid pointer 0x7f", "please correct the input"},
	},
	"python-value-error":       {yes: []string{raise("ValueError: bad label 11")}, no: []string{raise("my.ValueErrors: bad label 11")}},
	"python-type-error":        {yes: []string{raise("TypeError: f() got an unexpected keyword argument 'b'")}, no: []string{raise("KeyError: 'TypeError'")}},
	"python-key-error":         {yes: []string{raise("KeyError: 'lr'")}, no: []string{raise("ValueError: KeyError")}},
	"python-index-error":       {yes: []string{raise("IndexError: list index out of range")}, no: []string{raise("IndexError: Target 11 is out of bounds.")}},
	"python-attribute-error":   {yes: []string{raise("AttributeError: module 'torch' has no attribute 'compile'")}, no: []string{raise("omegaconf.errors.ConfigAttributeError: Key 'x' is not in struct")}},
	"python-name-error":        {yes: []string{raise("NameError: name 'lerning_rate' is not defined"), raise("UnboundLocalError: local variable 'x' referenced before assignment")}, no: []string{raise("ValueError: the name is not defined")}},
	"python-zero-division":     {yes: []string{raise("ZeroDivisionError: division by zero")}, no: []string{raise("ValueError: division by zero is not allowed")}},
	"python-arithmetic":        {yes: []string{raise("OverflowError: math range error"), raise("numpy.linalg.LinAlgError: Singular matrix")}, no: []string{raise("ValueError: math domain error")}},
	"python-not-implemented":   {yes: []string{raise("NotImplementedError: forward")}, no: []string{raise("RuntimeError: \"add\" not implemented for 'Half'")}},
	"python-recursion":         {yes: []string{raise("RecursionError: maximum recursion depth exceeded")}, no: []string{raise("ValueError: recursion depth 3")}},
	"tensorflow-argument":      {yes: []string{raise("tensorflow.python.framework.errors_impl.InvalidArgumentError: assertion of rank failed")}, no: []string{raise("ValueError: InvalidArgument")}},
	"cpp-logic-error":          {yes: []string{"terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 7) >= this->size() (which is 3)"}, no: []string{"terminate called after throwing an instance of 'std::runtime_error'\n  what():  std::out_of_range"}},
	"julia-error":              {yes: []string{"ERROR: LoadError: BoundsError: attempt to access 3-element Vector{Int64} at index [7]\nStacktrace:\n [1] getindex\nin expression starting at /home/ana/job/a.jl:3"}, no: []string{"ERROR: LoadError: the data are bad\nStacktrace:\n [1] error(s::String)\nin expression starting at /home/ana/job/a.jl:3"}},
	"panic-index":              {yes: []string{"panic: runtime error: index out of range [7] with length 1\n\ngoroutine 1 [running]:\nmain.main()\n\t./a.go:4 +0x14", "thread 'main' panicked at src/main.rs:1:91:\nindex out of bounds: the len is 1 but the index is 7\nnote: run with `RUST_BACKTRACE=1`"}, no: []string{"panic: no data\n\ngoroutine 1 [running]:\nmain.main()\n\t./a.go:4 +0x14"}},
	"fortran-runtime":          {yes: []string{"At line 7 of file solve.f90\nFortran runtime error: Index '11' of dimension 1 of array 'x' above upper bound of 10"}, no: []string{"At line 3 of file read.f90\nFortran runtime error: File 'x.csv' does not exist"}},
	"python-syntax":            {yes: []string{"  File \"/home/ana/job/train.py\", line 1\n    print(\"start\"\n         ^\nSyntaxError: '(' was never closed", raise("IndentationError: unexpected indent")}, no: []string{"SyntaxWarning: \"is\" with a literal. Did you mean \"==\"?"}},
	"shell-syntax":             {yes: []string{"run.sh: line 3: syntax error near unexpected token `fi'", "run.sh: 3: Syntax error: end of file unexpected (expecting \"fi\")"}, no: []string{"a syntax error was corrected"}},
	"julia-syntax":             {yes: []string{"ERROR: LoadError: syntax: incomplete: \"function\" at /home/ana/job/a.jl:3 requires end\nStacktrace:\n [1] top-level scope\nin expression starting at /home/ana/job/a.jl:3", "ERROR: ParseError:\n# Error @ /home/ana/job/a.jl:3:1\nStacktrace:\n [1] top"}, no: []string{"ERROR: LoadError: UndefVarError: `x` not defined\nStacktrace:\n [1] top\nin expression starting at /home/ana/job/a.jl:3"}},
	"module-missing":           {yes: []string{raise("ModuleNotFoundError: No module named 'sklearnx'"), "/usr/bin/python3: No module named nosuchmod", "ERROR: LoadError: ArgumentError: Package Flux not found in current path.\nStacktrace:\n [1] require\nin expression starting at /home/ana/job/a.jl:1"}, no: []string{"no module is named after me"}},
	"import-name":              {yes: []string{raise("ImportError: cannot import name 'x' from 'numpy' (/usr/lib/python3/dist-packages/numpy/__init__.py)")}, no: []string{raise("ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory")}},
	"dependency-version":       {yes: []string{raise("ImportError: tokenizers>=0.14,<0.19 is required for a normal functioning of this module, but found tokenizers==0.13.3."), raise("ValueError: numpy.dtype size changed, may indicate binary incompatibility.")}, no: []string{raise("ValueError: a version is required")}},
	"permission-denied":        {yes: []string{raise("PermissionError: [Errno 13] Permission denied: '/etc/shadow'"), "cp: cannot open '/etc/shadow' for reading: Permission denied", "mkdir: cannot create directory '/results': Permission denied"}, no: []string{"permission was denied by nobody", "run.sh: line 2: ./train.cfg: Permission denied"}},
	"program-not-executable":   {yes: []string{"run.sh: line 2: ./train.cfg: Permission denied", "run.sh: 2: ./train.cfg: Permission denied", "unstarted: fork/exec /home/ana/job/a.out: permission denied"}, no: []string{raise("PermissionError: [Errno 13] Permission denied: '/home/ana/x'"), "unstarted: fork/exec /home/ana/job/a.out: no such file or directory"}},
	"http-denied":              {yes: []string{raise("huggingface_hub.utils._errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url https://huggingface.co/m/l. Access to model m/l is restricted.")}, no: []string{raise("requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: https://x.org")}},
	"child-failed":             {yes: []string{raise("subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.")}, no: []string{raise("ValueError: no child")}},
	"peer-failed":              {yes: []string{"[rank1]:[E ProcessGroupNCCL.cpp:1182] NCCL communicator was aborted on rank 1. Original reason for failure was: unknown"}, no: []string{"previous errors: none, going on\n"}},
	"cpp-exception":            {yes: []string{"terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad mesh", "libc++abi: terminating due to uncaught exception of type std::runtime_error: bad mesh"}, no: []string{"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc"}},
	"rust-panic":               {yes: []string{"thread 'main' panicked at 'no data', src/main.rs:3:5\nnote: run with `RUST_BACKTRACE=1`", "thread 'main' has overflowed its stack\nfatal runtime error: stack overflow"}, no: []string{"thread 'main' is fine"}},
	"go-panic":                 {yes: []string{"panic: no data\n\ngoroutine 1 [running]:\nmain.main()\n\t./a.go:4 +0x14", "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t./a.go:4 +0x14"}, no: []string{"panic: nobody panics here"}},
	"uncaught-exception":       {yes: []string{raise("RuntimeError: the plan says no"), raise("my.lib.TrainingStopped: the plan says no"), raise("KeyError_: x")}, no: []string{raise("ValueError: the plan says no"), "RuntimeErrors are fine"}},
	"python-assertion":         {yes: []string{raise("AssertionError: batch 30 is not a multiple of 4"), raise("AssertionError")}, no: []string{raise("AssertionError: Torch not compiled with CUDA enabled")}},
	"c-assertion":              {yes: []string{"a.out: x.c:5: main: Assertion `n > 0' failed.", "Assertion failed in file src/mpid/ch4/src/ch4_impl.h at line 852: 0"}, no: []string{"every assertion holds, none failed"}},
	"rust-assertion":           {yes: []string{"thread 'main' panicked at a.rs:1:46:\nassertion `left == right` failed\n  left: 1\n right: 4"}, no: []string{"thread 'main' panicked at a.rs:1:46:\nno data"}},
	"check-failed":             {yes: []string{"F0101 12:00:00.000000 1234 tensor.cc:12] Check failed: n > 0 (0 vs. 0)", "2024-01-01 12:00:00.000: F tensorflow/core/x.cc:12] Check failed: status.ok()"}, no: []string{"Spell check failed: see the list\n" + raise("KeyError: 'x'")}},
	"oom-killer":               {yes: []string{"kernel: [ 9999.123456] Out of memory: Killed process 4711 (python3) total-vm:1kB", "kernel: Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB", "kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/x,task=python3,pid=4711,uid=0"}, no: []string{"kernel: systemd: python3.service: Succeeded", "Killed process 4711"}},
	"batch-oom":                {yes: []string{"slurmstepd: error: Detected 1 oom_kill event in StepId=440575.0. Some of the step tasks have been OOM Killed.", "slurmstepd: error: Detected 1 oom-kill event(s) in step 3495064.0 cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.", "srun: error: n1: task 0: Out Of Memory"}, no: []string{"slurmstepd: error: no event"}},
	"dataloader-shm":           {yes: []string{raise("RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."), raise("RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)")}, no: []string{raise("RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed."), raise("triton.runtime.errors.OutOfResources: out of resource: out of shared memory, Required: 3, Hardware limit: 2")}},
	"python-memory-error":      {yes: []string{raise("MemoryError"), raise("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array")}, no: []string{raise("ValueError: MemoryError")}},
	"torch-cpu-allocator":      {yes: []string{raise("RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 400 bytes. Error code 12 (Cannot allocate memory)")}, no: []string{raise("RuntimeError: the allocator is DefaultCPUAllocator")}},
	"native-out-of-memory":     {yes: []string{"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", "memory allocation of 1099511627776 bytes failed", "fatal error: runtime: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n\t./a.go:4", "ERROR: LoadError: OutOfMemoryError()\nStacktrace:\n [1] Array\nin expression starting at /home/ana/job/a.jl:1", raise("OSError: [Errno 12] Cannot allocate memory"), "java.lang.OutOfMemoryError: Java heap space"}, no: []string{raise("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"), raise("ImportError: /usr/lib/libgomp.so.1: cannot allocate memory in static TLS block")}},
	"cuda-out-of-memory":       {yes: []string{raise("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity)"), raise("RuntimeError: CUDA error: out of memory"), "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA out of memory. Tried to allocate 2 GiB"}, no: []string{raise("MemoryError: out of memory"), "srun: error: n1: task 0: Out Of Memory"}},
	"xla-resource-exhausted":   {yes: []string{raise("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 34359738368 bytes."), raise("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1,2] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc")}, no: []string{raise("RuntimeError: resources are exhausted")}},
	"loss-not-finite":          {yes: []string{"Loss is nan, stopping training", raise("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."), raise("ValueError: Model diverged with loss = NaN."), raise("tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.")}, no: []string{"loss is nan, skipping the batch", "loss is none of your business", "Loss is nan at step 3\n" + strings.Repeat("step 4 loss 2\n", 30)}},
	"missing-output-directory": {yes: []string{raise("FileNotFoundError: [Errno 2] No such file or directory: '/out/x.csv'", "with open(path, \"w\") as f:"), raise("FileNotFoundError: [Errno 2] No such file or directory: '/out/x.npy'", "np.save(path, x)"), raise("RuntimeError: Parent directory /out does not exist."), raise("OSError: Cannot save file into a non-existent directory: '/out'")}, no: []string{raise("FileNotFoundError: [Errno 2] No such file or directory: '/data/w.csv'", "with open(path, \"r\") as f:")}},
	"output-exists":            {yes: []string{raise("FileExistsError: [Errno 17] File exists: '/out/run1'", "os.makedirs(out)"), examlExists, "ERROR: output file /out/x already exists"}, no: []string{"/out/run1 exists, going on in it", "output file /out/x already exists, appending to it", "the module already exists\nin directory /out"}},
	"read-only":                {yes: []string{raise("OSError: [Errno 30] Read-only file system: '/out/x'"), "touch: cannot touch '/out/x': Read-only file system"}, no: []string{"the file is read-only"}},
	"file-size-limit":          {yes: []string{raise("OSError: [Errno 27] File too large")}, no: []string{raise("ValueError: the file is too large")}},
	"no-space":                 {yes: []string{raise("OSError: [Errno 28] No space left on device: '/out/ckpt.pt'"), "cp: error writing '/out/x': No space left on device"}, no: []string{"there is no space left in the buffer"}},
	"disk-quota":               {yes: []string{raise("OSError: [Errno 122] Disk quota exceeded: '/home/ana/x'")}, no: []string{"your quota is exceeded by nobody's"}},
	"io-error":                 {yes: []string{raise("OSError: [Errno 5] Input/output error: '/nfs/x'")}, no: []string{"the input/output of the layer"}},
	"stale-handle":             {yes: []string{raise("OSError: [Errno 116] Stale file handle: '/nfs/x'")}, no: []string{"the file handle is stale"}},
	"file-system-gone":         {yes: []string{raise("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/bucket/x'"), "ls: cannot access '/mnt/bucket': Transport endpoint is not connected"}, no: []string{"the transport endpoint is connected"}},
	"object-store":             {yes: []string{raise("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation (reached max retries: 4): Please reduce your request rate.")}, no: []string{raise("botocore.exceptions.ClientError: An error occurred (NoSuchKey) when calling the GetObject operation")}},
	"torch-write-failed":       {yes: []string{raise("RuntimeError: [enforce fail at inline_container.cc:337] . unexpected pos 64 vs 0", "torch.save(x, p)"), raise("RuntimeError: PytorchStreamWriter failed writing file data/3: file write failed", "torch.save(x, p)")}, no: []string{raise("RuntimeError: unexpected position 3")}},
	"torch-damaged":            {yes: []string{raise("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"), raise("RuntimeError: unexpected EOF, expected 3 more bytes. The file might be corrupted.")}, no: []string{raise("RuntimeError: the stream reader failed")}},
	"pickle-damaged":           {yes: []string{raise("EOFError: Ran out of input", "state = torch.load(path)"), raise("zipfile.BadZipFile: File is not a zip file", "w = load_checkpoint(p)")}, no: []string{raise("EOFError: Ran out of input", "pickle.load(f)")}},
	"safetensors-damaged":      {yes: []string{raise("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"), raise("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer")}, no: []string{raise("safetensors_rust.SafetensorError: File does not contain tensor x")}},
	"hdf5-damaged":             {yes: []string{raise("OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)", "m = load_model(path)")}, no: []string{raise("OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)", "h5py.File(data)")}},
	"tensorflow-damaged":       {yes: []string{raise("tensorflow.python.framework.errors_impl.DataLossError: Unable to open table file /ckpt/model: Data loss: not an sstable (bad magic number)")}, no: []string{raise("ValueError: the data loss is 3")}},
	"dcp-incomplete":           {yes: []string{raise("FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step-20/.metadata'", "dcp.load(state)"), raise("RuntimeError: Missing key in checkpoint state_dict: model.fc.weight.")}, no: []string{raise("KeyError: '.metadata'")}},
	"checkpoint-exception":     {yes: []string{raise("CheckpointError: ckpt-000020.pt was written by another kind of run"), raise("__main__.CheckpointError: x")}, no: []string{raise("CheckpointWarning: x")}},
	"address-in-use":           {yes: []string{raise("OSError: [Errno 98] Address already in use"), raise("RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).")}, no: []string{"the address is already in use by the form"}},
	"peer-closed":              {yes: []string{raise("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:14223"), raise("ConnectionResetError: [Errno 104] Connection reset by peer"), raise("BrokenPipeError: [Errno 32] Broken pipe")}, no: []string{"the connection was closed by mistake"}},
	"nccl-remote-error":        {yes: []string{raise("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, remote process exited or there was a network error, NCCL version 2.19.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.")}, no: []string{raise("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error (run with NCCL_DEBUG=INFO for details)")}},
	"connection-refused":       {yes: []string{raise("ConnectionRefusedError: [Errno 111] Connection refused")}, no: []string{raise("ValueError: he refused the connection")}},
	"unreachable":              {yes: []string{raise("OSError: [Errno 113] No route to host"), raise("TimeoutError: [Errno 110] Connection timed out")}, no: []string{"there are no routes to hosts in the table"}},
	"name-resolution":          {yes: []string{raise("socket.gaierror: [Errno -2] Name or service not known"), "curl: (6) Could not resolve host: data.example.org"}, no: []string{"[W socket.cpp:601] [c10d] The client socket has failed: Temporary failure in name resolution, retrying"}},
	"http":                     {yes: []string{raise("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /gpt2"), raise("OSError: We couldn't connect to 'https://huggingface.co' to load this file"), raise("urllib.error.HTTPError: HTTP Error 500: Internal Server Error")}, no: []string{raise("huggingface_hub.utils._errors.EntryNotFoundError: 404 Client Error. Entry Not Found for url: https://huggingface.co/x")}},
	"infiniband":               {yes: []string{"h1:12:34 [0] transport/net_ib.cc:94 NCCL WARN NET/IB : Got async event : port error", "h1:12:34 [0] NCCL WARN Call to ibv_modify_qp failed with error Invalid argument"}, no: []string{"h1:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB"}},
	"monitored-barrier":        {yes: []string{raise("RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms\n Original exception: \n[../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 2000ms for recv operation to complete")}, no: []string{"rank 1 passed monitoredBarrier"}},
	"nccl-timeout":             {yes: []string{"[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out."}, no: []string{"the watchdog sleeps"}},
	"gloo-timeout":             {yes: []string{raise("RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 4000ms for recv operation to complete")}, no: []string{"waited 4000ms for recv"}},
	"rendezvous-timeout":       {yes: []string{raise("RuntimeError: Socket Timeout"), raise("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.")}, no: []string{"a socket was timed"}},
	"jax-timeout":              {yes: []string{raise("jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect")}, no: []string{"the barrier was timed"}},
	"mpi-truncate":             {yes: []string{"[h1:00123] *** An error occurred in MPI_Recv\n[h1:00123] *** MPI_ERR_TRUNCATE: message truncated", "Abort(123) on node 1 (rank 1 in comm 0): Fatal error in PMPI_Recv: Message truncated, error stack:"}, no: []string{"the message is truncated at 3 lines"}},
	"mpi-peer-lost":            {yes: []string{"[h1][[12,1],0][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)", "MPIDI_CH3I_Progress(150): Communication error with rank 1"}, no: []string{"no communication error occurred"}},
	"mpi-call":                 {yes: []string{"Abort(269089030) on node 1 (rank 1 in comm 0): Fatal error in PMPI_Irecv: Invalid rank, error stack:", "[h1:00123] *** An error occurred in MPI_Send"}, no: []string{"Abort(1) on node 0: Fatal error in internal_Init_thread: Other MPI error", "fatal errors in MPI are rare"}},
	"mpi-errors-are-fatal":     {yes: []string{"[h1:00123] *** MPI_ERR_COMM: invalid communicator"}, no: []string{"MPI_ERRORS_RETURN is set"}},
	"mpi-abort":                {yes: []string{"Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 1", "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7."}, no: []string{"the program may call MPI_Abort"}},
	"mpi-no-finalize":          {yes: []string{"mpirun has exited due to process rank 1 with PID 0 on\nnode h1 exiting improperly. There are three reasons this could occur:"}, no: []string{"rank 1 exits properly"}},
	"daemon-lost":              {yes: []string{"ORTE has lost communication with a remote daemon."}, no: []string{"communication with the daemon is fine"}},
	"daemon-not-started":       {yes: []string{"ORTE was unable to reliably start one or more daemons.", "bash: line 1: orted: command not found"}, no: []string{"run.sh: line 2: trian: command not found"}},
	"mpi-singleton-daemon": {
		yes: []string{
			"[h1:13678] [[INVALID],INVALID] ORTE_ERROR_LOG: Unable to start a daemon on the local node in file ess_singleton_module.c at line 582",
			"[h1:13678] [[INVALID],INVALID] ORTE_ERROR_LOG: The system limit on number of children a process can have was reached in file ../../../../../../orte/mca/ess/singleton/ess_singleton_module.c at line 592",
			"The singleton application was not able to find the executable \"orted\" in\nyour PATH or in the directory where Open MPI/OpenRTE was initially installed,\nand therefore cannot continue.\n\nFor reference, we tried the following command:\n\n  /opt/openmpi/bin/orted\n\nand got the error Exec format error.",
			"  --> Returned \"Unable to start a daemon on the local node\" (-127) instead of \"Success\" (0)\n*** An error occurred in MPI_Init\n*** on a NULL communicator",
		},
		no: []string{
			"[h1:13678] mca: base: components_register: component singleton has no register or open function",
			"[h1:00123] [[12,0],0] ORTE_ERROR_LOG: Not found in file base/ess_base_std_orted.c at line 535",
		},
	},
	"mpi-init":            {yes: []string{"Abort(1090831) on node 0 (rank 0 in comm 0): Fatal error in internal_Init: Other MPI error, error stack:", "[h1:00123] *** An error occurred in MPI_Init"}, no: []string{"MPI_Init took 3 s"}},
	"mpi-transport":       {yes: []string{"[1700000000.1] [h1:123 :0] ib_mlx5.c:3 UCX  ERROR no usable device", "PML add procs failed\n--> Returned \"Not found\" (-13) instead of \"Success\" (0)"}, no: []string{"UCX INFO tls: tcp"}},
	"program-missing":     {yes: []string{"unstarted: exec: \"trian\": executable file not found in $PATH", "unstarted: fork/exec /home/ana/job/a.out: no such file or directory", "unstarted: \"trian\" is not in PATH: file does not exist", "unstarted: stat /srv/working directory/trian: no such file or directory"}, no: []string{"unstarted: the agent has no memory left", "unstarted: the working directory \"/srv/wd\" cannot be entered: chdir /srv/wd: no such file or directory"}},
	"exec-format":         {yes: []string{"unstarted: fork/exec /home/ana/job/a.out: exec format error", "run.sh: line 2: ./a.out: cannot execute binary file: Exec format error"}, no: []string{"unstarted: the format of the command is bad"}},
	"workdir":             {yes: []string{"unstarted: chdir /home/ana/jbo: input/output error", "unstarted: the working directory \"/srv/wd\" cannot be entered: chdir /srv/wd: no such file or directory", "unstarted: the working directory \"/srv/wd\" cannot be entered: permission denied", "unstarted: the working directory \"/srv/x\" cannot be entered: not a directory"}, no: []string{"unstarted: fork/exec /home/ana/job/a.out: exec format error", "unstarted: stat /srv/chdir /a.out: no such file or directory"}},
	"unstarted":           {yes: []string{"unstarted: the agent has no memory left", "unstarted: "}, no: []string{"unstarted: fork/exec /x: no such file or directory"}},
	"command-not-found":   {yes: []string{"run.sh: line 2: trian: command not found", "run.sh: 2: trian: not found"}, no: []string{"the command was not found to be wrong"}},
	"mpirun-launch":       {yes: []string{"[proxy:0:0@h1] HYDU_create (x.c:1): execvp error on file ./a.out (No such file or directory)", "mpirun was unable to launch the specified application as it could not access\nor execute an executable:", "slurmstepd: error: execve(): ./a.out: No such file or directory"}, no: []string{"the launch went well"}},
	"mpirun-slots":        {yes: []string{"There are not enough slots available in the system to satisfy the 4\nslots that were requested by the application:"}, no: []string{"there are slots enough"}},
	"container":           {yes: []string{"docker: Error response from daemon: manifest for x:y not found: manifest unknown: manifest unknown.", "Unable to find image 'x:y' locally"}, no: []string{"the container is up"}},
	"slurm-preempted":     {yes: []string{"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***"}, no: []string{"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***"}},
	"node-failure":        {yes: []string{"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "srun: error: Node failure on n1"}, no: []string{"the node did not fail"}},
	"cuda-illegal-access": {yes: []string{raise("RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported"), raise("RuntimeError: CUDA error: misaligned address")}, no: []string{raise("RuntimeError: CUDA error: device-side assert triggered")}},
	"cuda-launch-failure": {yes: []string{raise("RuntimeError: CUDA error: unspecified launch failure")}, no: []string{raise("RuntimeError: the rocket had a launch failure")}},
	"cuda-library":        {yes: []string{raise("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`"), raise("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR")}, no: []string{raise("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")}},
	"nccl-cuda":           {yes: []string{raise("torch.distributed.DistBackendError: NCCL error in: x.cpp:1331, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.6\nncclUnhandledCudaError: Call to CUDA function failed.")}, no: []string{raise("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error")}},
	"cuda-error":          {yes: []string{raise("RuntimeError: CUDA error: peer mapping resources exhausted")}, no: []string{raise("RuntimeError: CUDA error: out of memory"), "CUDA error: none\n" + raise("KeyError: 'x'")}},
	"xid-application":     {yes: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault"}, no: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."}},
	"cuda-init":           {yes: []string{raise("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start."), raise("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized")}, no: []string{raise("RuntimeError: CUDA error: unknown error")}},
	"gpu-busy":            {yes: []string{raise("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable")}, no: []string{"the devices are busy"}},
	"no-gpu":              {yes: []string{raise("RuntimeError: No CUDA GPUs are available"), raise("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"), raise("RuntimeError: CUDA error: no CUDA-capable device is detected")}, no: []string{"no GPUs were asked for"}},
	"driver-too-old":      {yes: []string{raise("RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."), raise("RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."), raise("RuntimeError: CUDA driver version is insufficient for CUDA runtime version")}, no: []string{"the driver of the car is too old"}},
	"no-kernel-image":     {yes: []string{raise("RuntimeError: CUDA error: no kernel image is available for execution on the device")}, no: []string{"no kernel image is shown"}},
	"cuda-mismatch":       {yes: []string{raise("RuntimeError: \nThe detected CUDA version (11.2) mismatches the version that was used to compile\nPyTorch (10.2). Please make sure to use the same CUDA versions.")}, no: []string{"CUDA version (11.2) matches"}},
	"no-cuda-build": {yes: []string{raise("AssertionError: Torch not compiled with CUDA enabled"), raise("RuntimeError: Distributed package doesn't have NCCL built in"),
		raise("AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'", "torch._C._cuda_setDevice(device)")}, no: []string{"torch is compiled with CUDA", raise("AttributeError: module 'torch._C' has no attribute '_XLAC'")}},
	"shared-library":      {yes: []string{"./a.out: error while loading shared libraries: libg.so: cannot open shared object file: No such file or directory", raise("OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory"), raise("ImportError: libGL.so.1: cannot open shared object file: No such file or directory")}, no: []string{"W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory\n" + raise("KeyError: 'x'")}},
	"library-version":     {yes: []string{"./a.out: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./a.out)", raise("ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /x/y.so)")}, no: []string{"version `GLIBC_2.38' found"}},
	"undefined-symbol":    {yes: []string{"./a.out: symbol lookup error: ./a.out: undefined symbol: solve", raise("ImportError: /x/fused.so: undefined symbol: _ZN3c104cuda9SetDeviceEi")}, no: []string{"the symbol is undefined"}},
	"xid-fallen-off-bus":  {yes: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "kernel: NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."}, no: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=4711, name=python3, Graphics Exception"}},
	"xid-ecc":             {yes: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, An uncorrectable double bit error (DBE) has been detected"}, no: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 45, pid=4711, Ch 00000008"}},
	"xid-nvlink":          {yes: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 74, pid=4711, NVLink: fatal error detected on link 1", "kernel: NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)"}, no: []string{"kernel: NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Nonfatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "kernel: NVRM: Xid (PCI:0000:3b:00): 43, pid=4711, Ch 00000008"}},
	"xid-other":           {yes: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 62, pid=4711, 0000(0000) 00000000 00000000"}, no: []string{"kernel: NVRM: Xid (PCI:0000:3b:00): 63, pid=4711, Row Remapper: New row marked for remapping", "kernel: NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module"}},
	"cuda-ecc":            {yes: []string{raise("RuntimeError: CUDA error: uncorrectable ECC error encountered"), raise("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution")}, no: []string{"ECC errors: 0"}},
	"sanitizer":           {yes: []string{"==4677==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60200000001b at pc 0x561f44ea91cb"}, no: []string{"AddressSanitizer is on"}},
	"heap-corruption":     {yes: []string{"double free or corruption (!prev)", "free(): invalid pointer", "*** stack smashing detected ***: terminated", "malloc(): corrupted top size"}, no: []string{"call free() on it"}},
	"segfault-trace":      {yes: []string{"Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f8296bcb040 (most recent call first):\n  File \"/home/ana/job/segv.py\", line 4 in train", "[h1:123] *** Process received signal ***\n[h1:123] Signal: Segmentation fault (11)"}, no: []string{"no segmentation fault here, going on"}},
	"kernel-segfault":     {yes: []string{"segv: python3[4711]: segfault at 0 ip 00007f1 sp 00007f2 error 4 in libfused.so[7f0000+1000]", "segv: traps: python3[4711] general protection fault ip:7f1 sp:7f2 error:0 in libfused.so[7f0000+1000]"}, no: []string{"kernel: python3[4711]: segfault at 0 ip 00007f1 sp 00007f2 error 4 in libfused.so[7f0000+1000]", "segv: audit: a segfault was noted"}},
	"illegal-instruction": {yes: []string{"Fatal Python error: Illegal instruction"}, no: []string{raise("RuntimeError: CUDA error: an illegal instruction was encountered")}},
	"cpp-terminate":       {yes: []string{"terminate called without an active exception", "Fatal Python error: Aborted"}, no: []string{"terminate called after throwing an instance of 'std::runtime_error'\n  what():  x"}},
	"worker-killed":       {yes: []string{raise("RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed."), raise("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL"), raise("RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly")}, no: []string{raise("RuntimeError: the worker is happy")}},
	"batch-time-limit":    {yes: []string{"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***", "The user-provided time limit for job execution has been reached:"}, no: []string{"no time limit is set"}},
	"batch-cancelled":     {yes: []string{"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***"}, no: []string{"slurmstepd: error: *** hello ***"}},
	"interrupted":         {yes: []string{raise("KeyboardInterrupt")}, no: []string{"a keyboard interrupt"}},
	"exit-code":           {yes: []string{"", "train.py: the config names no dataset", "step 1 loss 3\nbye"}, no: []string{raise("ValueError: x")}},
}
