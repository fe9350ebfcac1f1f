package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// parts makes speeds from a text such as "h1=10,11", which has hosts and the values of their parts.
func parts(kind job.SpeedKind, words string) (all []job.Speed) {
	for word := range strings.FieldsSeq(words) {
		host, values, _ := strings.Cut(word, "=")
		for i, v := range strings.Split(values, ",") {
			s := job.Speed{Host: host, Kind: kind, Of: fmt.Sprint("part ", i)}
			if _, err := fmt.Sscan(v, &s.Value); err != nil {
				panic(err)
			}
			all = append(all, s)
		}
	}
	return all
}

// links makes the speeds of the links between n hosts. Each link has the speed value, except those in slow.
// "3>*" in slow means all links from h3, "*>3" all links to h3, and "1>2" one link.
func links(kind job.SpeedKind, n int, value float64, slow ...string) (all []job.Speed) {
	for i := 1; i <= n; i++ {
		for j := 1; j <= n; j++ {
			if i == j || kind == job.SpeedTrips && i > j {
				continue
			}
			s := job.Speed{Host: fmt.Sprint("h", i), Kind: kind, Of: fmt.Sprint("h", j), Value: 1000}
			for _, way := range slow {
				if way == fmt.Sprintf("%d>*", i) || way == fmt.Sprintf("*>%d", j) || way == fmt.Sprintf("%d>%d", i, j) {
					s.Value = value
				}
			}
			all = append(all, s)
		}
	}
	return all
}

func TestSlowSpeeds(t *testing.T) {
	const slowTrip = 100 // 10 ms instead of 1
	for name, test := range map[string]struct {
		speeds []job.Speed
		want   string
	}{
		"none":                    {nil, ""},
		"one host":                {parts(job.SpeedCPU, "h1=10"), ""},
		"equal":                   {parts(job.SpeedCPU, "h1=10 h2=11 h3=9"), ""},
		"one of three":            {parts(job.SpeedCPU, "h1=10 h2=4 h3=9"), "cpu h2"},
		"just fast enough":        {parts(job.SpeedCPU, "h1=10 h2=5.1 h3=9.9 h4=10"), ""},
		"one core of a host":      {parts(job.SpeedCPU, "h1=10,10,3,10"), "cpu h1"},
		"two that differ":         {parts(job.SpeedMemory, "h1=10 h2=4"), "memory unclear h1 h2"},
		"two that do not":         {parts(job.SpeedMemory, "h1=10 h2=6"), ""},
		"two hosts, one core":     {parts(job.SpeedCPU, "h1=10,10 h2=10,3"), "cpu h2"},
		"two hosts, other nodes":  {parts(job.SpeedMemory, "h1=3 h2=10,10"), "memory unclear h1 h2"},
		"half of four":            {parts(job.SpeedCPU, "h1=10 h2=4 h3=10 h4=4"), "cpu unclear h1 h2 h3 h4"},
		"two of five":             {parts(job.SpeedCPU, "h1=10 h2=4 h3=10 h4=3 h5=10"), "cpu h4, cpu h2"},
		"one faster":              {parts(job.SpeedCPU, "h1=10 h2=40 h3=10"), ""},
		"spread widely":           {parts(job.SpeedCPU, "h1=3 h2=10 h3=22 h4=50 h5=110"), ""},
		"not measured":            {parts(job.SpeedCPU, "h1=0 h2=10 h3=10"), ""},
		"disks differ much":       {parts(job.SpeedLog, "h1=30 h2=100 h3=110"), ""},
		"a disk too slow":         {parts(job.SpeedCheckpoint, "h1=15 h2=100 h3=110"), "checkpoint-disk h1"},
		"a GPU a little slow":     {parts(job.SpeedMatmul, "h1=100,100 h2=100,70"), "gpu-matmul note h2"},
		"a GPU slow":              {parts(job.SpeedUpload, "h1=100,100 h2=100,20"), "gpu-upload h2"},
		"links equal":             {links(job.SpeedLink, 4, 0), ""},
		"one host's links":        {links(job.SpeedLink, 4, 10, "3>*", "*>3"), "link h3"},
		"one host of three":       {links(job.SpeedLink, 3, 10, "3>*", "*>3"), "link h3"},
		"one host sends slowly":   {links(job.SpeedLink, 4, 10, "3>*"), "link h3"},
		"one pair":                {links(job.SpeedLink, 4, 10, "1>2", "2>1"), "link pair h1 h2"},
		"one pair of three":       {links(job.SpeedLink, 3, 10, "1>2"), "link pair h1 h2"},
		"a host and a pair":       {links(job.SpeedLink, 5, 10, "5>*", "*>5", "1>2"), "link h5, link pair h1 h2"},
		"two hosts, one way":      {links(job.SpeedLink, 2, 10, "1>2"), "link unclear h1 h2"},
		"two hosts, both ways":    {links(job.SpeedLink, 2, 10, "1>2", "2>1"), ""},
		"half of the hosts":       {links(job.SpeedLink, 4, 10, "1>*", "*>1", "2>*", "*>2"), "link unclear h1 h2 h3 h4"},
		"long way to a host":      {links(job.SpeedTrips, 4, slowTrip, "3>*", "*>3"), "round-trips h3"},
		"long way to the first":   {links(job.SpeedTrips, 3, slowTrip, "1>*"), "round-trips h1"},
		"long way between two":    {links(job.SpeedTrips, 4, slowTrip, "1>3"), "round-trips pair h1 h3"},
		"trips of two hosts only": {links(job.SpeedTrips, 2, 0), ""},
	} {
		var got []string
		for _, s := range SlowSpeeds(test.speeds) {
			words := []string{string(s.Kind)}
			for word, yes := range map[string]bool{"unclear": s.Unclear, "pair": s.Pair, "note": s.Note} {
				if yes {
					words = append(words, word)
				}
			}
			got = append(got, strings.Join(append(words, s.Hosts...), " "))
			if len(s.Speeds) == 0 || s.Median <= 0 || s.Peers < 2 || !s.Unclear && s.Speeds[0].Value >= s.Median {
				t.Errorf("%s: got %+v", name, s)
			}
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	// A difference of less than SlowTrip does not matter.
	near := links(job.SpeedTrips, 4, 4000, "3>*", "*>3")
	for i := range near {
		if near[i].Value == 1000 {
			near[i].Value = 40000
		}
	}
	if got := SlowSpeeds(near); len(got) > 0 {
		t.Errorf("250 µs instead of 25: got %+v", got)
	}
	// GPUs are compared with those of their model.
	mixed := append(parts(job.SpeedMatmul, "h1=100,100 h2=100,100"), parts(job.SpeedMatmul, "h3=10,10")...)
	for i := range mixed[:4] {
		mixed[i].Model = "H100"
	}
	if got := SlowSpeeds(mixed); len(got) > 0 {
		t.Errorf("of another model: got %+v", got)
	}
}

// TestSlowSpeedsScattered: if the speeds of equal hosts differ by less than half of the limit, no host is
// named. A host that is far slower is always named.
func TestSlowSpeedsScattered(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 3 + r.IntN(20)
		for _, kind := range job.SpeedKinds() {
			worst := max(limits[kind].note, limits[kind].warn)
			value := func() float64 { return 1000 * (worst + (1-worst)*(0.05+0.95*r.Float64())) }
			var speeds []job.Speed
			for i := 1; i <= n; i++ {
				for j := 1; j <= n; j++ {
					if s := (job.Speed{Host: fmt.Sprint("h", i), Kind: kind, Of: fmt.Sprint("h", j)}); i != j {
						s.Value = value()
						speeds = append(speeds, s)
					}
				}
			}
			if got := SlowSpeeds(speeds); len(got) > 0 {
				t.Fatalf("seed %d: %d equal hosts: %+v", seed, n, got)
			}
			if kind == job.SpeedLink || kind == job.SpeedTrips {
				for i := range speeds {
					if speeds[i].Host == "h2" || speeds[i].Of == "h2" {
						speeds[i].Value /= 1000
					}
				}
			} else {
				for i := range speeds {
					if speeds[i].Host == "h2" {
						speeds[i].Value /= 1000
					}
				}
			}
			if got := SlowSpeeds(speeds); len(got) != 1 || !slices.Equal(got[0].Hosts, []string{"h2"}) || got[0].Unclear || got[0].Note {
				t.Fatalf("seed %d: h2 of %d is slow: %+v", seed, n, got)
			}
		}
	}
}

func TestFaster(t *testing.T) {
	first := parts(job.SpeedCPU, "h1=10,1 h2=5")
	second := append(parts(job.SpeedCPU, "h1=3,9"), job.Speed{Host: "h3", Kind: job.SpeedCPU, Value: 7})
	got := Faster(first, second)
	var values []float64
	for _, s := range got {
		values = append(values, s.Value)
	}
	if !slices.Equal(values, []float64{10, 9, 5, 7}) {
		t.Errorf("got %v", values)
	}
}
