package compare

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// skewLimit is the smallest difference of clocks that causes a warning. Smaller differences seldom
// disturb programs that compare times of different hosts, such as make over NFS.
const skewLimit = time.Second

// OddClocks compares the clocks of the hosts with the median clock. For each host, odd is true if the clock of
// the host differs from the median clock. median has the facts of the host with the median clock.
func OddClocks(facts []job.Facts) (odd []bool, median job.Facts) {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b job.Facts) int { return cmp.Compare(a.Skew, b.Skew) })
	median = sorted[(len(sorted)-1)/2]
	odd = make([]bool, len(facts))
	for i, f := range facts {
		odd[i] = Off(f.Skew-median.Skew, f.SkewWithin+median.SkewWithin)
	}
	return odd, median
}

// Off reports whether skew, the difference between two clocks, is large enough for a warning. maxError is the
// largest error with which skew was measured.
func Off(skew, maxError time.Duration) bool { return skew.Abs()-maxError >= skewLimit }

// Ahead describes a difference between two clocks, as in "1.3 s ahead of" or "120 s behind".
func Ahead(skew time.Duration) string {
	word := " ahead of"
	if skew < 0 {
		word = " behind"
	}
	switch d := skew.Abs(); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds()) + word
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds()) + word
	case d < 10*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes()) + word
	default:
		return fmt.Sprintf("%.0f h", d.Hours()) + word
	}
}

// Count returns how many values of a list are true.
func Count(list []bool) (n int) {
	for _, yes := range list {
		if yes {
			n++
		}
	}
	return n
}
