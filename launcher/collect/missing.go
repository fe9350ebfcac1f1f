package collect

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/launcher/agents"
)

// Missing describes output of a host that has not arrived.
type Missing struct {
	Host  string
	Ranks []int // the ranks whose output is incomplete
	Why   string
	// Abandoned is true if gangrun did not wait for the output.
	Abandoned bool
}

// maxNamed limits for how many ranks of a host a note gives the amount of output.
const maxNamed = 4

// Missing returns what has not arrived at the end of the collection, and emits a note for each host. wasStarted
// reports whether a rank was started; a rank that was not started has printed nothing.
func (c *Collection) Missing(wasStarted func(rank int) bool) []Missing {
	var missing []Missing
	for _, h := range c.hosts {
		host := h.from.Agent.Host
		ranks, arrived := h.truncated()
		ranks = slices.DeleteFunc(ranks, func(rank int) bool { return !wasStarted(rank) })
		late := h.fetch.bytes
		h.fetch.bytes = 0
		if len(ranks) == 0 && !h.runtime.truncated() {
			if late > 0 {
				c.note(host, fmt.Sprintf("the last %d bytes that its ranks had printed have been fetched from %s, and nothing of it is missing", late, host))
			}
			continue
		}
		var which []string
		for _, rank := range ranks[:min(len(ranks), maxNamed)] {
			which = append(which, fmt.Sprintf("%s of rank %d", text.Count(int(arrived[rank]), "byte"), rank))
		}
		if more := len(ranks) - maxNamed; more > 0 {
			which = append(which, fmt.Sprintf("some of %s", text.Count(more, "other rank")))
		}
		if h.runtime.truncated() {
			which = append(which, fmt.Sprintf("%s of %s", text.Count(int(h.runtime.size), "byte"), filepath.Base(h.runtime.path)))
		}
		c.note(host, fmt.Sprintf("output from %s is missing: only %s arrived: %s; %s", host, text.And(which), h.end.why, h.rest()))
		if len(ranks) > 0 {
			missing = append(missing, Missing{Host: host, Ranks: ranks, Why: h.end.why, Abandoned: h.end.abandoned})
		}
	}
	return missing
}

// truncated returns the ranks whose output is incomplete, and how many bytes of the output of each of them have
// arrived.
func (h *hostLogs) truncated() (ranks []int, arrived map[int]int64) {
	arrived = map[int]int64{}
	for _, r := range h.from.Ranks {
		out, err := h.logs[logKey{int32(r.Rank), false}], h.logs[logKey{int32(r.Rank), true}]
		if !out.whole || !err.whole {
			ranks = append(ranks, r.Rank)
			arrived[r.Rank] = out.size + err.size
		}
	}
	return ranks, arrived
}

// rest returns words that say where the rest of the output is.
func (h *hostLogs) rest() string {
	agent := h.from.Agent
	host, dir := agent.Host, agent.Spool(h.attempt)
	rest := "the rest is lost, since the agent deletes its logs when it ends"
	switch {
	case h.fetch.complete:
		rest = host + " has no more of it"
	case errors.Is(h.from.Lost, agents.ErrRestarted):
		rest = fmt.Sprintf("the rest may be lost, since %s was started anew", host)
	case errors.Is(agent.Trouble(), agents.ErrRestarted):
		rest = fmt.Sprintf("the rest may be lost, since %s was started anew; what is left of it is in %s there", host, dir)
	case h.from.Lost != nil: // the directory of the agent is not known
		rest = fmt.Sprintf("what is left of it is kept for 7 days on %s in /tmp/gangrun-*/*/logs/%s, if it is still there", host, h.attempt.GangName())
	case h.end.keptForSure:
		rest = fmt.Sprintf("the rest is kept for 7 days on %s in %s", host, dir)
	case h.end.maybeKept:
		rest = fmt.Sprintf("the rest is kept for 7 days on %s in %s, if it is still there", host, dir)
	}
	if h.fetch.err != nil {
		rest += fmt.Sprintf(" (it could not be fetched: %v)", h.fetch.err)
	}
	return rest
}
