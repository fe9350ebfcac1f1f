// Package agent is gangrun on a host: the service that a controller speaks to. It starts gangs
// (package gang) and holds leases. It forwards requests to a second agent that runs in a view of
// the host in which all writes are discarded (package contain). It ends itself and all its ranks
// when its controller has been gone for too long.
//
// An agent is a worker below two watchdogs: three processes of the same binary. The watchdogs only
// wait, and kill what is left when the process below them dies. All three are subreapers (prctl(2),
// PR_SET_CHILD_SUBREAPER), so that every process that a rank has forked stays among their
// descendants, however it has detached itself.
package agent
