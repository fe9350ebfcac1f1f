// Package lease holds GPUs: at most one gang has a GPU at a time, whoever its
// user is, and gangs get their turn in the order in which they came. There is
// no daemon: the kernel's file locks are the truth, and they go with the
// process that holds them, however it ends.
//
// # Files
//
// Everything lies in one local directory that every user can write to (Open
// says which), in files that begin with "gangrun.", the host ("@" for the real
// one, a name for a simulated one, whose leases all runs share) and what they
// are:
//
//	gangrun.@.gpu.GPU-6c1f...   one GPU; who has its flock has the GPU
//	gangrun.@.ticket.0          one waiting gang; without a flock it is void
//	gangrun.@.order             flocked for the moment in which a host decides
//
// They lie in the directory itself, not in one below it: that one would belong
// to the user who came first, who could replace it at will. They have mode 0666
// from the moment in which they have a name, whatever the umask, and are never
// replaced or removed: a GPU's file stays when the GPU is free, and the next
// gang that waits writes its ticket into a void one. Files that exist are opened
// without O_CREAT, which fs.protected_regular refuses for files of others in a
// sticky directory, and without following links.
//
// A record says who holds a file, in JSON behind a line with its length and
// checksum. It is written under the flock and only informs: the flock decides.
// A record without a flock is that of a holder which died; the GPU is free. So
// is one whose record is truncated, with a warning. A GPU whose file is no regular
// file, or may not be read, counts as held.
//
// What others write is read with care. A ticket counts only in a file that belongs
// to the user that it names, with at most MaxDevices GPUs and names that are short
// and can be printed; others are passed over with a warning. That an order file or
// a GPU's has a second name means nothing: who can make one can write to it anyway.
//
// # The ticket rule
//
// A ticket names the GPUs of the host that a gang could use (Devices), how many of
// them it claims (Count), and how many it must have there to start (Least). Older
// tickets, by Since and then Run, are served first, wherever they have come from. A host grants a request at once or
// not at all: never waiting for a GPU, and only if
//
//  1. nobody holds a GPU that it takes, and
//  2. no older ticket is worse off. Let every older ticket, the oldest first,
//     claim up to Count idle GPUs of its Devices; claims are moved between GPUs
//     so that younger tickets claim as many as they can without taking from older
//     ones. The request passes if the idle GPUs that it leaves allow every older
//     ticket as large a claim as before,
//  3. or if the request has a time limit, and ends before the earliest moment at
//     which the tickets that it takes from could start.
//
// So a small job goes ahead of a big one on GPUs that the big one does not wait
// for, on those that it leaves over, and for a time in which the big one could
// not start anyway. That moment is known if the records of the holders of
// the missing GPUs have an end. A holder without one is taken to hold its GPUs for
// Horizon more. So a ticket can lose at most Horizon to jobs with a time limit, and
// that only once: when the holders without an end are gone, all ends are known, and
// a job goes ahead only if it ends before them. The limit is the
// caller's to enforce; a job over its limit counts as about to end, so that
// nothing more is let past on its account.
//
// A gang that could start on one of several hosts, or on parts of several, has a
// ticket on each, of the same age, and claims on each all that it could use there.
// So of what it could use nothing that is idle, or becomes so, goes to anybody who
// came later: the GPUs that it can start with only grow, and it starts on the first
// place that has drained, as soon as it looks, however many come after it. What it
// keeps idle for that is less than it needs on each place where it could start. Its
// tickets have the earliest moment at which it can start, all of its hosts taken
// together, as NotBefore (see Earliest), so that GPUs that are kept for it can do
// short work until then.
//
// # Several hosts
//
// Acquire asks all hosts of a gang and keeps the grants only if all granted;
// else it gives all of them back at once, and only then waits. Nobody holds while
// it waits, hence no deadlock. No livelock either: tickets are on all hosts before
// the first GPU is taken, their order is the same on every host and never changes,
// so of the gangs that wait the oldest meets no older ticket anywhere, and
// younger ones are refused what it claims. What it may meet are grants
// of younger gangs in flight, from before its tickets were written or under rule
// 3: finitely many, each given back after one round or kept by a gang that then
// runs; and a random, bounded pause keeps two gangs from meeting in step forever. So the oldest
// gang starts as soon as its GPUs are idle, and then the next is the oldest.
//
// CPU slots are not leased.
package lease
