package flightrecord

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// The numbers of calls that Brief keeps for each process group.
const (
	keptOpen   = 8  // of the oldest calls that are not complete
	keptNewest = 24 // of the newest calls
)

// Brief returns the part of a record that Analyse needs: for each process group, the newest calls and the
// oldest calls that are not complete.
func Brief(r job.FlightRecord) job.FlightRecord {
	open, left := map[string]int{}, map[string]int{}
	for _, c := range r.Calls {
		if !c.PeerToPeer {
			left[c.Group]++
		}
	}
	var kept []job.CollectiveCall
	for _, c := range r.Calls {
		if c.PeerToPeer {
			continue
		}
		keep := left[c.Group] <= keptNewest
		left[c.Group]--
		if c.State != "completed" {
			open[c.Group]++
			keep = keep || open[c.Group] <= keptOpen
		}
		if keep {
			kept = append(kept, c)
		}
	}
	r.Calls = kept
	return r
}

// Words describes a problem, as in "nccl:all_reduce 7 of default_pg (train.py:120 average): rank 2 has not
// called it and ranks 0-1,3 wait".
func Words(p job.CollectiveProblem) string {
	said := fmt.Sprintf("%s %d of %s", p.Op, p.Seq, cmp.Or(p.Desc, "process group "+p.Group))
	if p.Where != "" {
		said += " (" + p.Where + ")"
	}
	var parts []string
	add := func(ranks []int, one, several string) {
		if len(ranks) == 1 {
			parts = append(parts, text.Ranks(ranks)+" "+one)
		} else if len(ranks) > 1 {
			parts = append(parts, text.Ranks(ranks)+" "+several)
		}
	}
	add(p.Missing, "has not called it", "have not called it")
	add(p.Differing, "has called another operation or given other tensors", "have called another operation or given other tensors")
	add(slices.DeleteFunc(slices.Clone(p.Waiting), func(r int) bool { return slices.Contains(p.Differing, r) }), "waits", "wait")
	add(p.Silent, "has left no record", "have left no record")
	return said + ": " + text.And(parts)
}

// Line returns a line of evidence with the record. file is the path of the dump on the host.
func Line(r job.FlightRecord, host, file string) job.Line {
	said := "it has called no collective yet"
	if n := len(r.Calls); n > 0 {
		c := r.Calls[n-1]
		said = fmt.Sprintf("its newest call is %s %d of %s, which is %s", c.Op, c.Seq, cmp.Or(r.Groups[c.Group].Desc, "process group "+c.Group), c.State)
		if c.Where != "" {
			said += ", from " + c.Where
		}
	}
	return job.Line{Source: job.SourceFlightRecord, Host: host, Rank: r.Rank, File: file, Text: said, Record: &r}
}
