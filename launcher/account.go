package launcher

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
)

// cut returns the ranks whose output has not come to its end, and how many bytes of
// it have arrived.
func (s *share) cut() (ranks []int, arrived map[int]int64) {
	arrived = map[int]int64{}
	for _, r := range s.node.ranks {
		out, err := s.logs[logKey{int32(r.Rank), false}], s.logs[logKey{int32(r.Rank), true}]
		if !out.whole || !err.whole {
			ranks = append(ranks, r.Rank)
			arrived[r.Rank] = out.size + err.size
		}
	}
	return ranks, arrived
}

// maxCut is of how many ranks of a host it is told how much of their output arrived.
const maxCut = 4

// account tells whose output has not all arrived once the collection is over. A gang
// that has ended well otherwise has failed for want of it, or was ended by who did
// not wait for it.
func (g *running) account(c *collection) {
	well := !slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return !e.Good() || e.Stopped })
	for _, s := range c.shares {
		host := s.node.agent.Host
		ranks, arrived := s.cut()
		ranks = slices.DeleteFunc(ranks, func(rank int) bool { // which has printed nothing
			return slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return e.Rank == rank && e.Status == job.Unstarted })
		})
		if len(ranks) == 0 && !s.said.cut() {
			if late := s.salvage.bytes; late > 0 {
				s.salvage.bytes = 0
				g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: host,
					Text: fmt.Sprintf("the last %d bytes that its ranks had printed have been fetched from %s, and nothing of it is missing", late, host)})
			}
			continue
		}
		var which []string
		for _, rank := range ranks[:min(len(ranks), maxCut)] {
			which = append(which, fmt.Sprintf("that of rank %d on %s after %d bytes", rank, host, arrived[rank]))
		}
		if more := len(ranks) - maxCut; more > 0 {
			which = append(which, fmt.Sprintf("that of %d more", more))
		}
		if s.said.cut() {
			which = append(which, fmt.Sprintf("%s of %s after %d bytes", filepath.Base(s.said.path), host, s.said.size))
		}
		rest := "its agent drops the rest when it ends"
		switch dir := s.node.agent.Spool(g.attempt); {
		case s.salvage.complete:
			rest = "nothing more of it is on " + host
		case errors.Is(s.node.lost, agents.ErrRestarted):
			rest = fmt.Sprintf("the rest may be lost, since %s was started anew", host)
		case errors.Is(s.node.agent.Trouble(), agents.ErrRestarted):
			rest = fmt.Sprintf("the rest may be lost, since %s was started anew; what is left of it is in %s there", host, dir)
		case s.node.lost != nil: // whose directory nobody knows
			rest = fmt.Sprintf("what is left of it is kept for 7 days on %s in /tmp/gangrun-*/*/logs/%s, if it is still there", host, g.attempt.GangName())
		case s.end.keptForSure:
			rest = fmt.Sprintf("the rest is kept for 7 days on %s in %s", host, dir)
		case s.end.maybeKept:
			rest = fmt.Sprintf("the rest is kept for 7 days on %s in %s, if it is still there", host, dir)
		}
		s.salvage.bytes = 0
		if s.salvage.err != nil {
			rest += fmt.Sprintf(" (it could not be fetched: %v)", s.salvage.err)
		}
		g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: host,
			Text: fmt.Sprintf("output breaks off, %s: %s; %s", strings.Join(which, ", "), s.end.why, rest)})
		if !well || len(ranks) == 0 {
			continue
		}
		for _, e := range slices.Clone(g.outcome.Exits) {
			if slices.Contains(ranks, e.Rank) {
				e.Fault, e.Stopped = fmt.Sprintf("its output did not all arrive from %s: %s", host, s.end.why), s.end.abandoned
				g.exit(e)
			}
		}
	}
}
