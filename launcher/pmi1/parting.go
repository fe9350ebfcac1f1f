package pmi1

// Standing is what a host tells of its ranks once one of them waits in a barrier
// while others wait for it.
type Standing struct {
	Stuck bool    `json:"stuck,omitempty"` // one cannot be let go from what the host itself knows
	Ranks []Stand `json:"ranks"`
}

// Stand is how a rank that has not ended stands to the others.
type Stand struct {
	Rank  int    `json:"rank"`
	Waits bool   `json:"waits,omitempty"` // in a barrier
	Links []Link `json:"links,omitempty"` // that may still be spoken on, or ask
}

// Link is one end of a connection between two ranks. Each end has an address, in
// words that are the same on all hosts.
type Link struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
	Asks   bool   `json:"asks,omitempty"` // the other rank's last request waits to be read
}

// Parted returns the ranks that wait in a barrier, are asked by another rank for an
// answer that they will not give before they are let go, and will be spoken to no
// more: whoever has the other end of a connection that does not ask waits in the
// barrier as well, or has sent its last request to a rank that waits, and so was done
// with all others before. An end that nobody is known to have keeps its rank.
func Parted(all []Stand) (ranks []int) {
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
