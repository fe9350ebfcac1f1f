package leftover

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Tag is a number that identifies a gang. It is stored as the soft limit of RLIMIT_LOCKS, which
// children inherit, and which the kernel has not used since Linux 2.4.25 (getrlimit(2)). Its
// highest bits are tagMagic. 32 bits of a hash of the run follow, and then the lowest bits of
// the attempt's number.
type Tag uint64

const (
	tagMagic    = 0x6772 // "gr"
	attemptBits = 14
	runBits     = 32
)

// TagOf returns the tag of a gang, RUN/ATTEMPT.
func TagOf(gang string) Tag {
	run, number, _ := strings.Cut(gang, "/")
	attempt, _ := strconv.Atoi(number)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(run)) // never fails
	return tagMagic<<(runBits+attemptBits) | Tag(hash.Sum32())<<attemptBits | Tag(attempt)&(1<<attemptBits-1)
}

// valid reports whether a soft limit of RLIMIT_LOCKS is a tag.
func (t Tag) valid() bool { return t>>(runBits+attemptBits) == tagMagic }

func (t Tag) sameRun(other Tag) bool {
	return t != 0 && t>>attemptBits == other>>attemptBits
}

// Of reports whether a tag is the tag of an attempt of run.
func (t Tag) Of(run string) bool { return run != "" && t.sameRun(TagOf(run+"/0")) }

// attempt returns the lowest bits of the attempt's number.
func (t Tag) attempt() int { return int(t & (1<<attemptBits - 1)) }

// Set gives the tag of a gang to this process, and to all processes that it starts from now on.
func Set(gang string) error {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_LOCKS, &limit)
	limit.Cur = uint64(TagOf(gang))
	if err == nil {
		err = unix.Prlimit(0, unix.RLIMIT_LOCKS, &limit, nil)
	}
	if err != nil {
		return fmt.Errorf("tag the processes of %s by the limit of locks: %w", gang, err)
	}
	return nil
}

// tagOf returns the tag of a process. It returns 0 if the process has no tag, or if the tag cannot be read.
func tagOf(pid int) Tag {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit); err != nil {
		limit.Cur = softLocks(readAll(strconv.Itoa(pid), "limits")) // prlimit is refused for a process of another group
	}
	if t := Tag(limit.Cur); t.valid() {
		return t
	}
	return 0
}

// softLocks returns the soft limit of file locks in the text of a file like /proc/PID/limits. It returns 0 if there is
// none.
func softLocks(limits []byte) uint64 {
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max file locks"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseUint(fields[0], 10, 64) // n is 0 for "unlimited"
				return n
			}
		}
	}
	return 0
}
