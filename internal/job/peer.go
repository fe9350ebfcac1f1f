package job

import "time"

// ReachFact is the result of a test connection from a host to another host of the gang.
type ReachFact struct {
	To      string `json:"to"`      // the other host
	Address string `json:"address"` // the address of the other host
	// Time is how long a message took to the other host and back, in nanoseconds. It is 0 if the
	// message did not come back.
	Time time.Duration `json:"time,omitempty"`
	// Error is why the message did not come back; empty if it came back.
	Error string `json:"error,omitempty"`
}

// SharedFact says which hosts share a directory with a host. Each host has written a file there
// and looked for the files of the others.
type SharedFact struct {
	// Sees names the hosts, this one included, whose file this host saw with the right content.
	Sees []string `json:"sees"`
	// Time is how long this host looked for the files, in nanoseconds: until it saw all of them, or gave up.
	Time time.Duration `json:"time,omitempty"`
}

// VersionKind is what a VersionFact is about.
type VersionKind string

// The kinds of versions.
const (
	VersionDriver  VersionKind = "driver"  // the driver of the GPUs
	VersionMPI     VersionKind = "mpi"     // the library that mpi4py needs
	VersionLibrary VersionKind = "library" // a shared library that the program needs
	VersionPython  VersionKind = "python"  // Python, or a package of it
)

// VersionFact is the version that a host has of something.
type VersionFact struct {
	Kind VersionKind `json:"kind"`
	Name string      `json:"name"`
	// Version also names the build if the host knows it: two builds of version 1.2 then have
	// different Versions.
	Version string `json:"version"`
}
