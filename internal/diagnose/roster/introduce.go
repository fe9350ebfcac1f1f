package roster

import "github.com/gangrun/gangrun/internal/job"

// Unranked is a log whose rank is not known: neither its name nor a launcher says which rank has printed it.
type Unranked struct {
	Text    []string
	Source  job.Source
	Records bool // it has records of a host
	Mixed   bool // it is the only log, and several ranks have printed it
}

// Introduce returns the rank of each of some logs, or -1. If a program says at the beginning of its log which rank it
// is, its log has that rank. If no program does so, Introduce uses the lines that name the rank which has printed
// them, among the first 400 lines of a log. If all these lines of a log name the same rank, the log has that rank.
// There must be at least two such logs. If several logs with the same Source have the same rank, none of them gets
// it. Logs that have records of a host or the output of several ranks get -1.
func Introduce(logs []Unranked) []int {
	ranks, found := assign(logs, Introduced)
	if found > 0 || len(logs) < 2 {
		return ranks
	}
	if sole, n := assign(logs, soleRank); n > 1 {
		return sole
	}
	return ranks
}

// assign returns the rank of each log according to find, or -1, and how many logs have a rank. A rank that find returns
// for several logs of the same stream does not count.
func assign(logs []Unranked, find func(text []string) int) (ranks []int, found int) {
	type of struct {
		rank   int
		source job.Source
	}
	owners := map[of][]int{}
	for i, l := range logs {
		ranks = append(ranks, -1)
		if k := (of{-1, l.Source}); !l.Records {
			k.rank = find(l.Text)
			owners[k] = append(owners[k], i)
		}
	}
	for k, mine := range owners {
		if k.rank >= 0 && len(mine) == 1 && !logs[mine[0]].Mixed {
			ranks[mine[0]] = k.rank
			found++
		}
	}
	return ranks, found
}

// soleRank returns the only rank that lines of a log name as their own. It returns -1 if they name none or several.
func soleRank(text []string) int {
	rank := -1
	for _, t := range text[:min(len(text), soleLines)] {
		r := Own(t)
		if r >= 0 && rank >= 0 && r != rank {
			return -1
		}
		rank = max(rank, r)
	}
	return rank
}

// soleLines is how many lines of a log soleRank reads.
const soleLines = 400
