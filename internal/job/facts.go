package job

import "time"

// Survey asks a host for the facts that the static preflight judges. The
// agents answer it in one round trip.
type Survey struct {
	Command []string `json:"command"`
	Workdir string   `json:"workdir"`
	// Env is the environment that a rank would get, as NAME=VALUE.
	Env           []string `json:"env"`
	Inputs        []string `json:"inputs,omitempty"`
	CheckpointDir string   `json:"checkpoint_dir,omitempty"`
	// Compile asks the host to compile the Python program; one host a gang does
	// it, since the hashes must be equal anyway.
	Compile bool `json:"compile,omitempty"`
	// MPI is what the user asked for.
	MPI MPI `json:"mpi,omitempty"`
	// Versions asks for the versions that hosts are to have in common.
	Versions bool `json:"versions,omitempty"`
}

// Facts is what a host says of itself and of a job's needs. Every failure is
// text in the fact that it belongs to: an empty Error means that it is well.
type Facts struct {
	Host    string         `json:"host"`
	Cores   int            `json:"cores"`
	Memory  int64          `json:"memory"` // bytes
	Time    time.Time      `json:"time"`
	Workdir PathFact       `json:"workdir"`
	Program ProgramFact    `json:"program"`
	Script  *ScriptFact    `json:"script,omitempty"`
	Inputs  []PathFact     `json:"inputs,omitempty"`
	Check   *DirectoryFact `json:"checkpoint_dir,omitempty"`
	// OpenMPI is the mpirun that would start the program; nil when MPI is not Open
	// MPI's.
	OpenMPI  *OpenMPIFact  `json:"open_mpi,omitempty"`
	Versions []VersionFact `json:"versions,omitempty"`

	// What follows is known where the gang is on several machines. Skew is how far
	// the host's clock is ahead of the controller's, give or take SkewWithin, both in
	// nanoseconds.
	Skew       time.Duration `json:"skew,omitempty"`
	SkewWithin time.Duration `json:"skew_within,omitempty"`
	Reach      []ReachFact   `json:"reach,omitempty"` // one for each other host that was tried
	// Shared is about the checkpoint directory; nil where this host could not use it.
	Shared *SharedFact `json:"shared,omitempty"`
}

// OpenMPIFact is what a host says of its Open MPI.
type OpenMPIFact struct {
	Mpirun  string `json:"mpirun,omitempty"`  // path; empty when there is none
	Daemon  string `json:"daemon,omitempty"`  // path of orted or prted; empty when there is none
	Version string `json:"version,omitempty"` // as in "4.1.4"; empty when not known
}

// ErrorKind is the kind of a failed file operation.
type ErrorKind string

// The kinds of errors that checks tell apart.
const (
	ErrorNone       ErrorKind = ""
	ErrorMissing    ErrorKind = "missing"    // ENOENT, ENOTDIR
	ErrorPermission ErrorKind = "permission" // EACCES, EPERM
	ErrorReadOnly   ErrorKind = "read-only"  // EROFS
	ErrorFull       ErrorKind = "full"       // ENOSPC, EDQUOT
	ErrorKindOf     ErrorKind = "kind"       // a directory where a file is needed, or the reverse
	ErrorIO         ErrorKind = "io"         // anything else
)

// PathFact is what a host says of one path.
type PathFact struct {
	Path  string `json:"path"` // absolute
	Dir   bool   `json:"dir,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Empty says that it is a directory without entries or a regular file of no
	// bytes; of an input only.
	Empty bool      `json:"empty,omitempty"`
	Kind  ErrorKind `json:"kind,omitempty"`
	Error string    `json:"error,omitempty"`
}

// ProgramFact is what a host says of the program, argument 0 of the command.
type ProgramFact struct {
	PathFact
	SHA256     string `json:"sha256,omitempty"`
	Executable bool   `json:"executable"`
	// Here says, of a name that is not in PATH, that the working directory has a file
	// of that name: its path. Executable is then about that file.
	Here string `json:"here,omitempty"`
	// Missing names the shared libraries that the dynamic loader does not find.
	Missing []string `json:"missing,omitempty"`
	// Format says why the kernel could not execute the file (wrong machine, no
	// #! line), empty when it could.
	Format string `json:"format,omitempty"`
	// Interpreter is the missing interpreter of a script or program, if any.
	Interpreter string `json:"interpreter,omitempty"`
	// MPI is that of the MPI library that the program needs, empty when it needs
	// none; Library is the library's path, or its name where it is not found.
	MPI     MPI    `json:"mpi,omitempty"`
	Library string `json:"library,omitempty"`
}

// ScriptFact is what a host says of the Python script that an interpreter is
// given, or of the code behind -c.
type ScriptFact struct {
	PathFact
	SHA256 string `json:"sha256,omitempty"`
	// Compiled says that it was compiled; Syntax is then the compiler's message
	// when it failed, with Line its line in the file.
	Compiled bool   `json:"compiled,omitempty"`
	Syntax   string `json:"syntax,omitempty"`
	Line     int    `json:"line,omitempty"`
	Source   string `json:"source,omitempty"` // the offending line
	// MPI4py says that the script imports mpi4py.
	MPI4py bool `json:"mpi4py,omitempty"`
}

// DirectoryFact is what a host says of the checkpoint directory after a
// write, fsync, rename and read in it.
type DirectoryFact struct {
	PathFact
	Created bool   `json:"created,omitempty"` // it was missing and has been made
	Step    string `json:"step,omitempty"`    // the step that failed: create, write, sync, rename, read
	Free    int64  `json:"free"`              // bytes free for the user
	// Largest is the size in bytes of the largest file or directory in it, the
	// best guess at what a checkpoint needs.
	Largest int64 `json:"largest"`
}
