package pmi1

// WaitReport is a host's report on the connections of its ranks. A host sends it if one of its ranks waits in a
// barrier while another rank waits for an answer from that rank.
type WaitReport struct {
	// Stuck is true if another rank waits for an answer from a rank in Ranks, and this host alone cannot tell
	// whether the rank in Ranks can be released.
	Stuck bool        `json:"stuck,omitempty"`
	Ranks []RankLinks `json:"ranks"`
}

// RankLinks describes the connections of a rank that has not ended.
type RankLinks struct {
	Rank  int    `json:"rank"`
	Waits bool   `json:"waits,omitempty"` // the rank waits in a barrier
	Links []Link `json:"links,omitempty"` // the connections over which the rank may still send or receive
}

// Link is one end of a connection between two ranks. All hosts write the address of an end in
// the same way.
type Link struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
	Asks   bool   `json:"asks,omitempty"` // a request of the other rank has arrived, and this rank has not read it yet
}

// Releasable returns the ranks that can be released from a barrier before all others have arrived. Such a rank waits in
// the barrier while another rank waits for an answer from it, and no new request can arrive over any of its
// connections. There are two cases in which no new request can arrive over a connection. In the first case, the rank
// at the other end has sent its request to close the connection; after that, it sends no other. A request that a rank
// in the barrier has not read is such a request. In the second case, the rank at the other end is known and blocked: it
// is in the barrier itself, or waits for an answer from a rank in the barrier.
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
