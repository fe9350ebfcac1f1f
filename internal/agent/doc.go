// Package agent is gangrun on a host: the service that a controller speaks to. It starts gangs
// (package gang) and holds leases. It passes on the requests for a second agent that runs where all
// writes are discarded (package contain). It ends itself and all its ranks when its controller has
// been gone for too long.
//
// An agent is a worker below two watchdogs: three processes of the same binary. The watchdogs only
// wait, and kill what is left when the process below them dies. All three are subreapers (prctl(2),
// PR_SET_CHILD_SUBREAPER), so that whatever a rank has forked, and however that has detached
// itself, stays among their descendants.
package agent
