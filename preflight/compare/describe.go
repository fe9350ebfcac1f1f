package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// mostParts is how many slow parts of a host a description names.
const mostParts = 4

// signs are the ends of signatures of the health check, except for GPUs.
var signs = map[job.SpeedKind]string{
	job.SpeedCPU: "cpu", job.SpeedMemory: "memory", job.SpeedCheckpoint: "disk", job.SpeedLog: "disk",
	job.SpeedLink: "link", job.SpeedTrips: "link",
}

// Describe returns the words for a Slow: the end of its signature, and values for its text. The keys of values
// are: "what", for what is slow; "value"; "median"; "times", for how many times faster the median is; and
// "peers", for what it was compared with.
func Describe(s Slow) (signature string, values map[string]string) {
	signature = signs[s.Kind]
	switch {
	case s.Unclear:
		signature = "differs"
	case s.Pair:
		signature = "link-pair"
	case signature == "" && s.Note:
		signature = "gpu-below"
	case signature == "":
		signature = "gpu"
	}
	what, peers := subject(s)
	// The slowest comes first.
	times, ratio := 0, s.Median/s.Speeds[0].Value
	if ratio < 9.95 {
		times = 1 // decimal
	}
	return signature, map[string]string{
		"what": what, "peers": peers, "value": amounts(s), "median": Amount(s.Kind, s.Median),
		"times": strconv.FormatFloat(ratio, 'f', times, 64),
	}
}

// amounts writes the Speeds of a Slow.
func amounts(s Slow) string {
	amount := func(v float64) string { return Amount(s.Kind, v) }
	var values []string
	for i, p := range s.Speeds {
		if i == mostParts {
			values = append(values, strconv.Itoa(len(s.Speeds)-i)+" more")
			break
		}
		switch {
		case s.Kind == job.SpeedLink && (s.Pair || s.Unclear):
			values = append(values, amount(p.Value)+" from "+p.Host+" to "+p.Of)
		case s.Kind == job.SpeedTrips && (s.Pair || s.Unclear):
			values = append(values, amount(p.Value)+" between "+p.Host+" and "+p.Of)
		case s.Kind == job.SpeedLink:
			values = append(values, "it "+p.Of+" "+amount(p.Value)+" at most")
		case s.Unclear:
			values = append(values, amount(p.Value)+" on "+p.Host)
		case len(s.Speeds) > 1:
			values = append(values, amount(p.Value)+" ("+p.Of+")")
		default:
			values = append(values, amount(p.Value))
		}
	}
	return text.And(values)
}

// subject writes what is slow, and how many peers it has.
func subject(s Slow) (what, peers string) {
	slowest := s.Speeds[0]
	one := len(s.Speeds) == 1
	switch s.Kind {
	case job.SpeedCPU:
		what, peers = "the CPU", text.Count(s.Peers, "core")
	case job.SpeedMemory:
		what, peers = "copying in memory", text.Count(s.Peers, "NUMA node")
	case job.SpeedCheckpoint:
		what, peers = "the disk of the checkpoint directory "+strconv.Quote(slowest.Of), text.Count(s.Peers, "host")
	case job.SpeedLog:
		what, peers = "the disk of the logs "+strconv.Quote(slowest.Of), text.Count(s.Peers, "host")
	case job.SpeedMatmul, job.SpeedGPUCopy, job.SpeedUpload:
		doing := map[job.SpeedKind]string{job.SpeedMatmul: "matrix multiplication", job.SpeedGPUCopy: "copying in GPU memory", job.SpeedUpload: "copying to GPU memory"}
		what, peers = doing[s.Kind]+" ("+slowest.Model+")", text.Count(s.Peers, "GPU")
	case job.SpeedLink:
		what, peers = "the network link", text.Count(s.Peers, "host")
	case job.SpeedTrips:
		what, peers = "a round trip over the network", text.Count(s.Peers, "host")
	}
	switch {
	case one && (s.Kind == job.SpeedCPU || s.Kind == job.SpeedMemory):
		what += " (" + slowest.Of + ")"
	case one && s.Kind.OfGPU():
		what = slowest.Of + ", " + what
	}
	return what, peers
}

// Amount writes a speed with its unit. It writes a rate of round trips as the time of one round trip.
func Amount(kind job.SpeedKind, v float64) string {
	switch kind {
	case job.SpeedCPU:
		return text.Rate(v, "turns/s")
	case job.SpeedMatmul:
		return text.Rate(v, "FLOP/s")
	case job.SpeedTrips:
		return strconv.FormatFloat(1000/v, 'f', 2, 64) + " ms"
	}
	return text.Rate(v, "B/s")
}

// Table returns the lines of a table of speeds. For each host, the table has the slowest speed of each kind, except
// for links and round trips. For links, it has the host's fastest speed in each direction. For round trips, it has
// the host's fastest speed. SlowSpeeds compares these fastest speeds, too, because a host counts as slow only if even
// its best link is slow.
func Table(speeds []job.Speed) []string {
	hosts := hostsOf(speeds)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := []string{"host"}
	var kinds []job.SpeedKind
	for _, k := range job.SpeedKinds() {
		if slices.ContainsFunc(speeds, func(s job.Speed) bool { return s.Kind == k && s.Value > 0 }) {
			kinds, head = append(kinds, k), append(head, string(k))
		}
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, h := range hosts {
		words := []string{h}
		for _, k := range kinds {
			words = append(words, cell(speeds, h, k))
		}
		fmt.Fprintln(w, strings.Join(words, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// cell is the speed of a kind of one host.
func cell(speeds []job.Speed, host string, kind job.SpeedKind) string {
	var out, in, least float64
	for _, s := range speeds {
		switch {
		case s.Kind != kind || s.Value <= 0:
		case s.Host == host:
			out = max(out, s.Value)
			if least == 0 || s.Value < least {
				least = s.Value
			}
		case s.Of == host:
			in = max(in, s.Value)
		}
	}
	switch {
	case kind == job.SpeedTrips && max(out, in) > 0:
		return Amount(kind, max(out, in))
	case kind == job.SpeedLink && max(out, in) > 0:
		return Amount(kind, out) + " out, " + Amount(kind, in) + " in"
	case least > 0:
		return Amount(kind, least)
	}
	return "-"
}
