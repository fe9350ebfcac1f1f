package job

// StackTool is how a stack was read.
type StackTool string

// The ways of reading a stack, the most informative first.
const (
	StackPySpy        StackTool = "py-spy"
	StackGDB          StackTool = "gdb"
	StackEU           StackTool = "eu-stack"
	StackFaulthandler StackTool = "faulthandler"
	StackProc         StackTool = "proc" // only what the kernel tells: where each thread waits
)

// RankStack has the stacks of the processes of one rank.
type RankStack struct {
	Rank  int       `json:"rank"`
	Host  string    `json:"host"`
	Tool  StackTool `json:"tool,omitempty"`
	Error string    `json:"error,omitempty"` // why no better tool than Tool, or no tool at all, could be used
	// Python is true if the process that does the rank's work is a Python program.
	Python  bool          `json:"python,omitempty"`
	Threads []ThreadStack `json:"threads"` // the main thread of the process that does the rank's work comes first
	// Record is what PyTorch's flight recorder has written down about the rank; nil if there is no flight
	// recorder.
	Record *FlightRecord `json:"record,omitempty"`
}

// ReadPython reports whether the stacks have the functions of a Python program.
func (s RankStack) ReadPython() bool { return s.Tool == StackPySpy || s.Tool == StackFaulthandler }

// ThreadStack is the stack of one thread.
type ThreadStack struct {
	PID   int          `json:"pid"`
	TID   int          `json:"tid"`
	Name  string       `json:"name"`
	Main  bool         `json:"main,omitempty"` // the main thread of the process that does the rank's work
	State ProcessState `json:"state"`
	// Syscall is the system call in which the thread waits. Wait is the function of the kernel in which it
	// waits. Each is empty if the thread is in none, or if gangrun does not know it.
	Syscall string `json:"syscall,omitempty"`
	Wait    string `json:"wait,omitempty"`
	// On is what the system call reads, writes or otherwise uses: the path of a file, "a pipe" or "a socket".
	// It is empty if that is not known.
	On     string  `json:"on,omitempty"`
	Frames []Frame `json:"frames,omitempty"` // innermost first
}

// Frame is one frame of a stack.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"` // the source file or, if that is not known, the library
	Line     int    `json:"line,omitempty"`
	Native   bool   `json:"native,omitempty"` // not a function of Python
}

// StackGroup is a group of ranks that are at the same place.
type StackGroup struct {
	Ranks []int `json:"ranks"`
	// Where describes the place in a few words, as in "MPI_Allreduce (train.py:120 average)", or "" if it is not known.
	Where string       `json:"where"`
	State ProcessState `json:"state"`
	// Frames is the stack that the ranks have in common, innermost first.
	Frames []Frame `json:"frames,omitempty"`
	// Collective is true if the ranks wait in a collective or in another call for other ranks.
	Collective bool `json:"collective,omitempty"`
	// Network is true if the ranks wait for data on a socket. The data may come from another rank.
	Network bool `json:"network,omitempty"`
}

// KernelFile is the File of a Frame that is a function of the kernel.
const KernelFile = "[kernel]"
