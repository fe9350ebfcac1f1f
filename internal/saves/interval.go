package saves

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Best returns the interval between checkpoints with which a training loses the least time. The interval is
// measured from the end of one checkpoint to the beginning of the next. cost is how long each checkpoint stops
// the training. between is the mean time between failures of the training. The result is Daly's higher-order
// estimate of the optimum (J. T. Daly, Future Generation Computer Systems 22, 2006). For a small cost, it is
// about Young's estimate, sqrt(2 × cost × between).
func Best(cost, between time.Duration) time.Duration {
	if cost <= 0 || between <= 0 {
		return 0
	}
	c, m := cost.Seconds(), between.Seconds()
	if c >= 2*m {
		return between
	}
	x := math.Sqrt(c / (2 * m))
	return time.Duration((math.Sqrt(2*c*m)*(1+x/3+x*x/9) - c) * float64(time.Second))
}

// leastCost is the shortest stall that counts. A shorter stall cannot be distinguished from noise.
const leastCost = 10 * time.Millisecond

// usualNodeFailures is the rate of failures on a large cluster: 6.5 in 1,000 days of a host (Kokolis et al.,
// arXiv 2410.21680, of RSC-1).
const usualNodeFailures = 6.5 / 1000 / 24

// UsualBetween returns the mean time between failures that is usual for a gang on that number of hosts of a
// large cluster.
func UsualBetween(hosts int) time.Duration {
	return time.Duration(float64(time.Hour) / (usualNodeFailures * float64(max(1, hosts))))
}

// Advise returns how often a job should save. every is the usual time between two checkpoints of the job; 0 if
// that is not known. write is how long it takes to write a checkpoint. stall is how long the training stands
// still for a checkpoint; nil if that is not known. rate is a result of Rate, with the mean time between
// failures. The second result is false if neither write nor stall is known.
func Advise(every, write time.Duration, stall *time.Duration, rate job.SaveInterval) (job.SaveInterval, bool) {
	advice := rate
	cost := write
	advice.Assumed = stall == nil
	if stall != nil {
		cost = *stall
	}
	if cost <= 0 && write <= 0 {
		return job.SaveInterval{}, false
	}
	cost = max(cost, leastCost)
	best := Best(cost, time.Duration(rate.Failures))
	// The next checkpoint must not begin before this one is written, and the job must not write all the time.
	best = rounded(max(best, 2*write))
	advice.Every, advice.Cost, advice.Best = job.Duration(every), job.Duration(cost), job.Duration(best)
	return advice, best > 0
}

// rounded returns d rounded to at most two digits.
func rounded(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return max(time.Second, d.Round(time.Second))
}

// Near reports whether a job saves about as often as is best: with the best interval, the job would gain less than half
// a percent of its time.
func Near(a job.SaveInterval) bool {
	return lost(a, time.Duration(a.Every))-lost(a, time.Duration(a.Best)) < 0.005
}

// lost returns the share of its time that a job loses by saves and failures if it saves at the interval every.
func lost(a job.SaveInterval, every time.Duration) float64 {
	if every <= 0 {
		return 0
	}
	cost, between := time.Duration(a.Cost).Seconds(), time.Duration(a.Failures).Seconds()
	return cost/every.Seconds() + (every.Seconds()/2+cost)/between
}

// sources says where a mean time between failures comes from.
var sources = map[job.FailureSource]string{
	job.FailuresGiven:   "as the job says",
	job.FailuresOfJob:   "in earlier runs of the job",
	job.FailuresOfHosts: "in earlier runs on these hosts",
	job.FailuresUsual:   "as is usual for a cluster",
}

// Words describes how often a job saves, how much time that costs, and how much time another interval would cost.
func Words(a job.SaveInterval) string {
	every, best := time.Duration(a.Every), time.Duration(a.Best)
	from := fmt.Sprintf("a failure every %s, %s", about(time.Duration(a.Failures)), sources[a.Source])
	if every <= 0 {
		return fmt.Sprintf("saving every %s would cost %s of the time and lose %s per failure on average (%s)", about(best), percent(a, best), about(best/2), from)
	}
	now := fmt.Sprintf("you save every %s, which costs %s of the time and loses %s per failure on average", about(every), percent(a, every), about(every/2))
	if Near(a) {
		return fmt.Sprintf("%s: that is near the best (%s)", now, from)
	}
	return fmt.Sprintf("%s; %s would cost %s and lose %s (%s)", now, about(best), percent(a, best), about(best/2), from)
}

// percent returns the share of its time that a job stands still if it saves at the interval every.
func percent(a job.SaveInterval, every time.Duration) string {
	share := 100 * time.Duration(a.Cost).Seconds() / every.Seconds()
	most := ""
	if a.Assumed { // the job may train while it writes
		most = "at most "
	}
	if share < 0.01 {
		return "less than 0.01 %"
	}
	return most + strconv.FormatFloat(share, 'g', 2, 64) + " %"
}

// about formats a duration with two digits, as in "7.5 min" or "58 min".
func about(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		n := float64(d) / float64(u.unit)
		switch {
		case n >= 100 && u.name == "d":
			return fmt.Sprintf("%.0f %s", n, u.name)
		case n >= 9.95 || n >= 1 && math.Abs(n-math.Round(n)) < 0.05:
			return fmt.Sprintf("%.0f %s", n, u.name)
		case n >= 1:
			return fmt.Sprintf("%.1f %s", n, u.name)
		}
	}
	if d < 50*time.Millisecond {
		return "less than 0.1 s"
	}
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
