package job

import "time"

// ReachFact is the result of a test connection from a host to another host of the gang.
type ReachFact struct {
	To      string `json:"to"`      // the other host
	Address string `json:"address"` // of the other host
	// Time is how long a message took to the other host and back, in nanoseconds; 0 if it did not
	// come back.
	Time time.Duration `json:"time,omitempty"`
	// Error is why it did not come back; empty if it did.
	Error string `json:"error,omitempty"`
}

// SharedFact says whose files a host has seen in a directory that all hosts should share.
type SharedFact struct {
	// Sees names the hosts, itself included, whose file it saw with the right content.
	Sees []string `json:"sees"`
	// Time is how long it looked until it saw all of them or gave up, in nanoseconds.
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
	// Version also distinguishes builds, if possible.
	Version string `json:"version"`
}
