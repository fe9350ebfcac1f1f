// Package agent is gangrun on a host: it starts the host's share of a gang,
// writes every byte that the ranks print to their log files, reports what
// happens to them, and ends every process that came of them. It serves one
// controller over one connection and ends, with all its ranks, when that goes.
//
// An agent is two processes of the same binary. The watchdog is the parent: it
// does nothing but wait, and kills what is left when the agent dies. Both are
// subreapers (prctl(2), PR_SET_CHILD_SUBREAPER), so that whatever a rank
// forked, and however it detached itself, stays among their descendants.
package agent
