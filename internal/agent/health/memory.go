package health

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// memoryShare is the share of the memory, in percent, that must be used before its growth is judged.
const memoryShare = 90

// memoryState is what a Judge remembers of the memory of the host or of a control group.
type memoryState struct {
	used  growth
	limit int64
	told  worse
}

// judge returns a sign if most of the memory is used and the use grows.
func (s *memoryState) judge(now time.Time, m Memory) []Sign {
	if m.Limit != s.limit {
		s.used, s.limit = growth{}, m.Limit
	}
	s.used.add(point{now, m.Used})
	percent := percentOf(m.Used, m.Limit)
	if percent < memoryShare {
		return nil
	}
	left, soon := s.used.left(m.Limit - m.Used)
	if !soon || !s.told.again(now, left) {
		return nil
	}
	who, of := "the host's memory", "memory and swap space of the host"
	hint := "the kernel will kill the process that it finds worst: use less memory, for instance fewer data workers or smaller buffers, or start fewer ranks on the host"
	if m.Group != "" {
		who, of = "the memory of its control group", m.Group
		if len(m.Ranks) > 0 {
			who = "the memory of " + text.Ranks(m.Ranks)
		}
		hint = "the kernel will kill a process of the group then: use less memory, or ask for a higher limit, as with --mem in Slurm or resources.limits.memory in Kubernetes"
	}
	return []Sign{{
		Health: job.Health{Sign: job.HealthMemory, Severity: job.SeverityWarning, Ranks: m.Ranks, Left: job.Duration(left.Round(time.Second))},
		Text:   fmt.Sprintf("%s runs out: %d %% of %s is used, and at this rate it is full in %s (%s)", who, percent, size(m.Limit), about(left), of),
		Hint:   hint,
	}}
}

// killed returns a sign if the kernel has killed processes of a group since the last sample.
func (j *Judge) killed(k Kills) []Sign {
	last := j.kills[k.Group]
	if last == nil {
		if len(j.kills) < maxStates {
			j.kills[k.Group] = &k.Count
		}
		return nil
	}
	n := k.Count - *last
	if *last = k.Count; n <= 0 {
		return nil
	}
	return []Sign{{
		Health: job.Health{Sign: job.HealthOOM, Severity: job.SeverityError, Ranks: k.Ranks, Count: int(n)},
		Text:   fmt.Sprintf("the kernel has killed %s of the control group of %s for want of memory (%s)", text.Count(int(n), "process"), text.Ranks(k.Ranks), k.Group),
		Hint:   "use less memory, or ask for a higher limit",
	}}
}

// percentOf returns how many percent of all are used, rounded down.
func percentOf(used, all int64) int {
	if all <= 0 {
		return 0
	}
	return int(float64(used) / float64(all) * 100)
}
