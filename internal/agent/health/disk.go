package health

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	fullShare  = 100              // a file system is full if less than 1/fullShare of it is free,
	fullBytes  = 1 << 30          // and less than fullBytes bytes
	saveLimit  = 2 * time.Minute  // steady growth of a checkpoint directory is reported if less time is left
	frozenTime = 30 * time.Second // a file system that has not answered for so long is frozen
)

// diskState is what a Judge remembers of a file system.
type diskState struct {
	used               growth
	full, soon, frozen worse
}

// judge returns the signs of a file system.
func (s *diskState) judge(now time.Time, d Disk) []Sign {
	if d.Stuck > 0 {
		if d.Stuck < frozenTime || !s.frozen.again(now, 0) {
			return nil
		}
		return []Sign{{
			Health: job.Health{Sign: job.HealthFrozen, Severity: job.SeverityWarning},
			Text:   fmt.Sprintf("the file system of %s (%s) has not answered for %s: programs that use it hang", d.Path, words[d.Use], d.Stuck.Round(time.Second)),
			Hint:   "look at its server, and for nfs, lustre or ceph in dmesg",
		}}
	}
	s.used.add(point{now, d.Size - d.Free})
	sign := job.HealthDiskFull
	if d.Use == UseShared {
		sign = job.HealthSharedFull
	}
	where := fmt.Sprintf("the file system of %s (%s)", d.Path, words[d.Use])
	switch {
	case d.Free < fullBytes && d.Free < d.Size/fullShare:
		if s.full.again(now, 0) {
			return []Sign{{Health: job.Health{Sign: sign, Severity: job.SeverityError}, Hint: d.hint(),
				Text: fmt.Sprintf("%s is full: %s of %s is free", where, size(d.Free), size(d.Size))}}
		}
	case d.Inodes > 0 && d.FreeInodes == 0:
		if s.full.again(now, 0) {
			return []Sign{{Health: job.Health{Sign: sign, Severity: job.SeverityError}, Hint: "remove files that are not needed: df -i shows the number of files",
				Text: fmt.Sprintf("%s can hold no more files: it has %d", where, d.Inodes)}}
		}
	default:
		return s.fillsUp(now, d, sign, where)
	}
	return nil
}

// fillsUp returns a sign if a file system will be full soon.
func (s *diskState) fillsUp(now time.Time, d Disk, sign job.HealthSign, where string) []Sign {
	left, soon := s.used.left(d.Free)
	if d.Use == UseCheckpoints { // a checkpoint that is being written grows fast and then stops growing
		left, soon = s.used.slowly(d.Free, saveLimit)
		soon = soon && len(s.used.all) >= manyPoints
	}
	if !soon || !s.soon.again(now, left) {
		return nil
	}
	return []Sign{{
		Health: job.Health{Sign: sign, Severity: job.SeverityWarning, Left: job.Duration(left.Round(time.Second))}, Hint: d.hint(),
		Text: fmt.Sprintf("%s fills up: %s of %s is free, and at this rate it is full in %s", where, size(d.Free), size(d.Size), about(left)),
	}}
}

// hint says what to do about a file system that is full.
func (d Disk) hint() string {
	switch d.Use {
	case UseCheckpoints:
		return "remove old checkpoints, save less often, or use another file system for --checkpoint-dir"
	case UseShared:
		return "a process that needs more of it dies of SIGBUS: use fewer data workers, or make it larger, as with mount -o remount,size=64G /dev/shm, or --shm-size in a container"
	case UseLogs:
		return "remove what is not needed there, or keep gangrun's home on another file system (GANGRUN_HOME)"
	}
	return "remove what is not needed there, or set TMPDIR to another file system"
}
