package job

import "time"

// ReachFact is what came of a host's connection to another one of the gang.
type ReachFact struct {
	To      string `json:"to"`      // the other host
	Address string `json:"address"` // of the other host
	// Time is how long a token took to the other host and back, in nanoseconds; 0
	// where it did not come back.
	Time time.Duration `json:"time,omitempty"`
	// Error says why not; an empty one is that it did.
	Error string `json:"error,omitempty"`
}

// SharedFact is which files of a directory that hosts share a host has seen.
type SharedFact struct {
	// Sees names the hosts whose file it saw, as they had written it; its own is
	// among them.
	Sees []string `json:"sees"`
	// Time is how long it took until it saw them all or gave up, in nanoseconds.
	Time time.Duration `json:"time,omitempty"`
}

// VersionKind is what a VersionFact is about.
type VersionKind string

// The kinds of versions.
const (
	VersionDriver  VersionKind = "driver"  // of the GPUs
	VersionMPI     VersionKind = "mpi"     // the library that mpi4py needs
	VersionLibrary VersionKind = "library" // a shared library that the program needs
	VersionPython  VersionKind = "python"  // Python, or a package of it
)

// VersionFact is the version that a host has of something.
type VersionFact struct {
	Kind VersionKind `json:"kind"`
	Name string      `json:"name"`
	// Version tells builds apart, too, where it can.
	Version string `json:"version"`
}
