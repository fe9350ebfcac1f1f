// Package lease lets at most one gang hold a GPU at a time, among the gangs of all
// users of a machine, and serves waiting gangs in the order in which they came. There
// is no daemon. Kernel file locks decide who holds a GPU; the kernel releases them when
// the holder's process ends, in whatever way.
//
// # Files
//
// All files are in one local directory to which every user can write (see Open). A
// file's name has "gangrun.", the host, and a kind. The host is "@" for the real one or
// the name of a simulated one; all runs share the leases of a simulated host.
//
//	gangrun.@.gpu.GPU-6c1f...   a GPU; the process with the flock holds the GPU
//	gangrun.@.ticket.0          the ticket of a waiting gang; void without a flock
//	gangrun.@.order             the order lock, held while a process decides for a host
//
// The files are directly in that directory. A subdirectory would belong to the user who
// created it, and that user could replace it. The files have mode 0666 from the moment
// in which they have a name, whatever the umask is. They are never replaced or removed:
// a GPU's file stays when the GPU is released, and a waiting gang writes its ticket to a
// void file. Existing files are opened without O_CREAT, because fs.protected_regular
// refuses O_CREAT for other users' files in a sticky directory. Symbolic links are not
// followed.
//
// The record in a file describes the holder. It is JSON after a line with its length
// and checksum, and is written under the flock. It only informs: the flock decides. A
// record without a flock was written by a holder that died; the GPU is free. That
// holds for a truncated record, too, with a warning. A GPU counts as held if its file is
// not a regular file or may not be read.
//
// Records of other users are not trusted. A ticket counts only if its file belongs to
// the user whom it names, if it names at most MaxDevices GPUs, and if its names are
// short and printable. Other tickets are ignored with a warning. An order file or a
// GPU's file may have a second name (a hard link): a user who can make one can write to
// the file anyway.
//
// # The ticket rule
//
// A ticket names the GPUs of the host that a gang could use (Devices), how many of them it claims
// (Count), and how many it must have there to start (Least). Older tickets are served first, by
// Since and then by Run, whichever process wrote them. A request is granted or refused, never
// queued. It is granted if both conditions hold:
//
//  1. nobody holds a GPU of the request's Take, and
//  2. granting it takes nothing from an older ticket. To test this, every older ticket,
//     the oldest first, claims up to Count idle GPUs of its Devices; claims may move
//     to other GPUs so that younger tickets can claim as many as possible. This is done
//     with the GPUs of Take idle and again without them, and no ticket may get less.
//
// The second condition has an exception. Older tickets that can claim less do not forbid a
// request with a time limit that ends before the earliest time at which these tickets could
// start.
//
// So a small job goes ahead of a big one on GPUs for which the big one does not wait, on GPUs that
// it does not need, and as long as the big one could not start anyway. The time at which the big
// one can start is known if the records of the holders of the missing GPUs have an end. A holder
// without an end is assumed to hold its GPUs for another Horizon. So jobs with a time limit can
// delay a ticket by at most Horizon, and only once: when the holders without an end are gone, all
// ends are known, and a job goes ahead only if it ends before them. The caller must enforce the
// limit. A job over its limit counts as about to end: no other job goes ahead in the expectation
// that it still runs.
//
// A gang that could start on one of several hosts, or on parts of several, has a ticket on each.
// They have the same age, and each claims all GPUs that the gang could use there. So a gang that
// came later gets none of these GPUs when they are or become idle: the set with which the older
// gang can start only grows, and that gang starts on the first place with enough idle GPUs, however
// many gangs come after it. Until then, each place has fewer idle GPUs than the gang needs there,
// so it keeps no more than these idle. The NotBefore of its tickets is the earliest time at which
// it can start on all of its hosts together (see Earliest), so that short jobs can use the GPUs
// that are kept for it until then.
//
// # Several hosts
//
// Acquire sends a request to all hosts of a gang, and keeps the grants only if all hosts
// grant theirs. Otherwise it releases the grants, and waits only after that. A gang
// holds nothing while it waits, so there is no deadlock.
//
// There is no livelock either. A gang has tickets on all hosts before it takes its first GPU, and
// the order of tickets is the same on every host and never changes. So the oldest waiting gang
// finds no older ticket on any host, and younger gangs are refused the GPUs that it claims. It may
// find GPUs held by younger gangs that were granted them before its tickets were written, or under
// the exception. These grants are finitely many: each is released after one round, or kept by a
// gang that then runs. Random, bounded pauses keep two gangs from colliding again and again. So the
// oldest gang starts as soon as its GPUs are idle, and then the next one is the oldest.
//
// CPU slots are not leased.
package lease
