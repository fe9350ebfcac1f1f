// Package agent is the part of gangrun that runs on each host: a service to which a controller speaks. It
// starts gangs (package gang) and holds leases. If the writes of the ranks are to be discarded, it forwards
// requests to a second agent. That agent runs in a view of the host in which all writes are discarded (package
// contain). An agent ends itself and all its ranks when its controller has been gone for too long.
//
// The parent and the grandparent of an agent are processes of the same program: the inner and the outer
// watchdog. A watchdog only waits. When the process below it dies, the watchdog kills the processes that are
// left. The agent and both watchdogs are subreapers (prctl(2), PR_SET_CHILD_SUBREAPER). So every process that a
// rank has forked stays among their descendants, however it has detached itself.
package agent
