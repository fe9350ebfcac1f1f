package job

import "time"

// Survey asks a host for the facts that the static preflight needs. The agent sends all facts in
// one answer.
type Survey struct {
	Command []string `json:"command"`
	Workdir string   `json:"workdir"`
	// Env is the environment that a rank would get, as NAME=VALUE.
	Env           []string `json:"env"`
	Inputs        []string `json:"inputs,omitempty"`
	CheckpointDir string   `json:"checkpoint_dir,omitempty"`
	// Compile asks the host to compile the Python program. One host of a gang is enough,
	// because the program must be the same on all hosts.
	Compile bool `json:"compile,omitempty"`
	// MPI is the value of --mpi.
	MPI MPI `json:"mpi,omitempty"`
	// Versions asks for the versions that should be the same on all hosts.
	Versions bool `json:"versions,omitempty"`
	// Box is the container in which the agent looks; nil if it looks on the host itself.
	Box *Box `json:"box,omitempty"`
	// GPUs is how many GPUs each rank gets, as in Spec.
	GPUs int `json:"gpus_per_rank,omitempty"`
}

// Facts is what a host reports about itself and about what a job needs. Facts about paths, about the image and
// about connections have an Error of their own. It is empty if the host could find out the fact.
type Facts struct {
	Host   string    `json:"host"`
	Cores  int       `json:"cores"`
	Memory int64     `json:"memory"` // bytes
	Time   time.Time `json:"time"`
	// Image is nil if the job has no image. If Image.Problem is set, the fields below are not
	// known.
	Image   *ImageFact     `json:"image,omitempty"`
	Workdir PathFact       `json:"workdir"`
	Program ProgramFact    `json:"program"`
	Script  *ScriptFact    `json:"script,omitempty"`
	Inputs  []PathFact     `json:"inputs,omitempty"`
	Check   *DirectoryFact `json:"checkpoint_dir,omitempty"`
	// OpenMPI describes the Open MPI that would start the program; nil if the program uses
	// none.
	OpenMPI  *OpenMPIFact  `json:"open_mpi,omitempty"`
	Versions []VersionFact `json:"versions,omitempty"`
	// CUDA is nil if the host has no NVIDIA driver, or nothing of CUDA was found.
	CUDA *CUDAFact `json:"cuda,omitempty"`

	// The following fields are set only if the gang is on several machines. Skew is how far the host's clock is
	// ahead of the controller's. SkewWithin is the largest error of Skew. Both are in nanoseconds.
	Skew       time.Duration `json:"skew,omitempty"`
	SkewWithin time.Duration `json:"skew_within,omitempty"`
	Reach      []ReachFact   `json:"reach,omitempty"` // for each other host to which this host tried to connect
	// Shared says which hosts share the checkpoint directory with this one; nil if this host
	// could not use the directory.
	Shared *SharedFact `json:"shared,omitempty"`
}

// OpenMPIFact describes the Open MPI of a host.
type OpenMPIFact struct {
	Mpirun  string `json:"mpirun,omitempty"`  // path; empty when there is none
	Daemon  string `json:"daemon,omitempty"`  // path of orted or prted; empty when there is none
	Version string `json:"version,omitempty"` // as in "4.1.4"; empty when not known
}

// ErrorKind is the kind of a failed file operation.
type ErrorKind string

// The kinds of errors that checks distinguish.
const (
	ErrorNone       ErrorKind = ""
	ErrorMissing    ErrorKind = "missing"    // ENOENT, ENOTDIR
	ErrorPermission ErrorKind = "permission" // EACCES, EPERM
	ErrorReadOnly   ErrorKind = "read-only"  // EROFS
	ErrorFull       ErrorKind = "full"       // ENOSPC, EDQUOT
	ErrorKindOf     ErrorKind = "kind"       // a directory where a file is needed, or the reverse
	ErrorIO         ErrorKind = "io"         // anything else
)

// PathFact describes a path on a host.
type PathFact struct {
	Path  string `json:"path"` // absolute
	Dir   bool   `json:"dir,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Changed is the time of the last change of the file or, for a directory, of the directory and its first
	// entries. It is set only for inputs.
	Changed time.Time `json:"changed,omitzero"`
	// Empty is true for a directory without entries and for a regular file without bytes. It is
	// set only for inputs.
	Empty bool      `json:"empty,omitempty"`
	Kind  ErrorKind `json:"kind,omitempty"`
	Error string    `json:"error,omitempty"`
	// If the path is missing in the container, but exists on the host, HostPath is the path on
	// the host, and Mount is the file or directory to mount.
	HostPath string `json:"host_path,omitempty"`
	Mount    string `json:"mount,omitempty"`
}

// ProgramFact describes the program, which is argument 0 of the command, on a host.
type ProgramFact struct {
	PathFact
	SHA256     string `json:"sha256,omitempty"`
	Executable bool   `json:"executable"`
	// If the program is not found in PATH, but the working directory has a file with its name, Here is the path
	// of that file. Executable then says whether that file is executable.
	Here string `json:"here,omitempty"`
	// Missing names the shared libraries that the dynamic loader does not find.
	Missing []string `json:"missing,omitempty"`
	// Old names the versions that the program needs, but for which the host's libraries are too old, as in
	// "GLIBC_2.38 of libc.so.6".
	Old []string `json:"old,omitempty"`
	// Format is why the kernel cannot execute the file, for instance because the file is for another machine or
	// has no #! line. It is empty if the kernel can execute it.
	Format string `json:"format,omitempty"`
	// Interpreter is the interpreter that a script or program needs, if the host lacks it.
	Interpreter string `json:"interpreter,omitempty"`
	// MPI is the family of the MPI library that the program needs; empty if the program needs
	// none. Library is the path of that library, or its name if the host does not find the
	// library.
	MPI     MPI    `json:"mpi,omitempty"`
	Library string `json:"library,omitempty"`
}

// ScriptFact describes the Python code that the command runs on a host: a script, or the text
// after -c.
type ScriptFact struct {
	PathFact
	SHA256 string `json:"sha256,omitempty"`
	// Compiled is true if the host tried to compile the script. If that failed, Syntax is the
	// compiler's message, and Line the line in the script.
	Compiled bool   `json:"compiled,omitempty"`
	Syntax   string `json:"syntax,omitempty"`
	Line     int    `json:"line,omitempty"`
	Source   string `json:"source,omitempty"` // the offending line
	// MPI4py is true if the script imports mpi4py.
	MPI4py bool `json:"mpi4py,omitempty"`
}

// DirectoryFact describes the checkpoint directory on a host. The host has tried to write, fsync,
// rename and read a file there.
type DirectoryFact struct {
	PathFact
	Created bool   `json:"created,omitempty"` // the directory was missing, and the host has made it
	Step    string `json:"step,omitempty"`    // the step that failed: create, write, sync, rename, read
	Free    int64  `json:"free"`              // bytes free for the user
	// Largest is the size in bytes of the largest file or directory in the checkpoint directory.
	// It is an estimate of the room that a checkpoint needs.
	Largest int64 `json:"largest"`
}
