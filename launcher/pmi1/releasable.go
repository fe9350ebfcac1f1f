package pmi1

// WaitReport is a host's report of its ranks, sent when a rank waits in a barrier while other ranks
// wait for an answer of that rank.
type WaitReport struct {
	Stuck bool        `json:"stuck,omitempty"` // as far as this host knows, one of Ranks cannot be released
	Ranks []RankLinks `json:"ranks"`
}

// RankLinks describes the connections of a rank that has not ended.
type RankLinks struct {
	Rank  int    `json:"rank"`
	Waits bool   `json:"waits,omitempty"` // in a barrier
	Links []Link `json:"links,omitempty"` // over which the rank may still send or receive
}

// Link is one end of a connection between two ranks. The address of an end is written in the
// same way on all hosts.
type Link struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
	Asks   bool   `json:"asks,omitempty"` // the other rank's last request waits to be read
}

// Releasable returns the ranks that can be released from a barrier before the others have come. A
// rank is releasable if it waits in the barrier, another rank waits for an answer of it, which it
// gives only after the barrier, and no further request can reach it. No further request can come
// over a connection without a request if the rank at its other end is blocked: that rank is in the
// barrier itself, or waits for an answer of a rank in the barrier. If the rank at the other end of
// a connection is unknown, the rank is not releasable.
func Releasable(all []RankLinks) (ranks []int) {
	type ends struct{ local, remote string }
	owner, done := map[ends]int{}, map[int]bool{}
	for _, s := range all {
		done[s.Rank] = done[s.Rank] || s.Waits
		for _, l := range s.Links {
			owner[ends{l.Local, l.Remote}] = s.Rank
		}
	}
	for _, s := range all {
		for _, l := range s.Links {
			if asker, known := owner[ends{l.Remote, l.Local}]; known && s.Waits && l.Asks {
				done[asker] = true
			}
		}
	}
	for _, s := range all {
		asked, kept := false, !s.Waits
		for _, l := range s.Links {
			peer, known := owner[ends{l.Remote, l.Local}]
			asked = asked || l.Asks
			kept = kept || !l.Asks && !(known && done[peer])
		}
		if asked && !kept {
			ranks = append(ranks, s.Rank)
		}
	}
	return ranks
}
