// Package lease lets at most one gang hold a GPU at a time, among the gangs of all users of a machine. It serves
// waiting gangs in the order in which they came. There is no daemon. Kernel file locks decide who holds a GPU. The
// kernel releases these locks when the last process that has the file open ends for any reason. An agent passes its
// files to its watchdog (see Held.Descriptors), which ends after the ranks.
//
// # Files
//
// All files are in one local directory to which every user can write (see Open). A file's name
// consists of "gangrun.", the host, and the kind of the file. The host is "@" for this machine,
// or the name of a simulated host. All runs share the leases of a simulated host.
//
//	gangrun.@.gpu.GPU-6c1f...   a GPU; the process with the flock holds the GPU
//	gangrun.@.ticket.0          the ticket of a waiting gang; void without a flock
//	gangrun.@.order             the order lock, held while a process decides for a host
//
// The files are not in a subdirectory, because a subdirectory would belong to the user who
// created it, and that user could replace it. The files have mode 0666 from the moment at which
// they get their names, whatever the umask is. They are never replaced or removed. A GPU's file
// stays when the GPU is released, and a waiting gang writes its ticket to a void file if there
// is one. Existing files are opened without O_CREAT, because fs.protected_regular refuses
// O_CREAT for other users' files in a sticky directory. Symbolic links are not followed.
//
// The record in a file describes the holder. It is JSON after a line with its length and
// checksum, and is written under the flock. The record is only for information; the flock
// decides. If there is a record but no flock, the holder has died and the GPU is free. If that
// record is truncated, the GPU is free too, and there is a warning. A GPU counts as held if its
// file is not a regular file or may not be read.
//
// Records of other users are not trusted. A ticket counts only if its file belongs to the user
// whom it names, if it names at most MaxDevices GPUs, and if its names are short and printable.
// Other tickets are ignored with a warning. An order file or a GPU's file may have a hard link.
// The link does no harm, since a user who can create it can write to the file anyway.
//
// # The ticket rule
//
// A ticket names the GPUs of the host that a gang could use (Devices), how many of them it
// claims (Count), and how many it must have on this host to start (Least). Older tickets are
// served first: they are ordered by Since, then by Run. A request is either granted or refused
// at once. It is granted if both conditions hold:
//
//  1. nobody holds any GPU of the request's Take, and
//  2. the grant takes nothing from an older ticket. To test this, every older ticket, the
//     oldest first, claims up to Count idle GPUs of its Devices. A claim may move to another
//     GPU so that a younger ticket can claim more. The claims are computed twice: for the case
//     that the request is refused, and for the case that it is granted. The request is refused
//     if an older ticket can claim fewer GPUs in the second case.
//
// The second condition has an exception for a request with a time limit. An older ticket may
// get less if the gang of the request ends before the earliest time at which the gang of that
// ticket could start.
//
// So a small job can start before a big job that came earlier in three cases:
//
//   - It takes only GPUs for which the big job does not wait.
//   - There are more idle GPUs than the big job claims, and it takes only some of the others.
//   - It has a time limit, and ends before the big job could start.
//
// The time at which the big job can start follows from the ends of the holders whose GPUs it still
// needs. The record of a holder says when the holder ends at the latest, if that is known. If it is
// not known, the rule assumes that the holder keeps its GPUs for another Horizon. So jobs with a time
// limit can delay the big job by at most Horizon, and only as long as there are holders without a known end.
//
// The caller must enforce the time limits. If a holder exceeds its limit, the rule assumes that the older gang can
// start at once on the GPUs of that holder. Then no younger job may take these GPUs before the older gang.
//
// A gang that could start on one of several hosts, or on parts of several hosts, has a ticket on each of them. These
// tickets have the same age, and each of them claims all GPUs that the gang could use on its host. A gang that came
// later does not get any of these GPUs, even when they become idle, unless it ends in time. So apart from such short
// jobs, the number of the idle GPUs which the older gang could use can only grow. The older gang starts as soon as
// there are enough, however many gangs come after it. Until then, idle GPUs are kept for it. The NotBefore of its
// tickets is the earliest time at which it can start on all of its hosts together (see Earliest). Short jobs can use
// the idle GPUs until that time.
//
// # Several hosts
//
// Acquire sends a request to each host of a gang, and keeps the grants only if all hosts grant
// their requests. Otherwise it releases the grants before it waits. A gang holds no GPU while
// it waits, so there is no deadlock.
//
// There is no livelock either. A gang has tickets on all hosts before it takes its first GPU. The order of
// tickets is the same on every host and never changes. So the oldest waiting gang has the oldest ticket on each
// of its hosts, and the GPUs that it claims are refused to younger gangs. Younger gangs may still hold some of
// these GPUs, if they were granted before the tickets of the oldest gang were written, or under the exception.
// There are only finitely many such grants. Acquire releases a grant at once if the gang has not got all of its
// grants. Otherwise the gang runs, and keeps the grant only until it ends. Random, bounded pauses keep two
// gangs from colliding again and again. So the oldest gang starts as soon as its GPUs are idle. Then the next
// gang is the oldest.
//
// CPU slots are not leased.
package lease
