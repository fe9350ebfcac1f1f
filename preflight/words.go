package preflight

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mostNames is how many names a sentence lists before it counts the others.
const mostNames = 8

func quote(s string) string { return strconv.Quote(s) }

// names lists names for a sentence, as in "h1, h2 and h3".
func names(list []string) string {
	if over := len(list) - mostNames; over > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNames], ", "), over)
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// where says on which of a gang's hosts something holds, as the end of a
// sentence.
func where(hosts []string, all int) string {
	if len(hosts) == all {
		return fmt.Sprintf(" (on all %d hosts)", all)
	}
	return fmt.Sprintf(" (on %s: %d of %d hosts)", names(hosts), len(hosts), all)
}

// count says how many there are of something, as in "1 rank" or "2 ranks".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size says a number of bytes in the unit that fits, as in "1.5 GiB".
func size(bytes int64) string {
	if bytes < 1<<10 {
		return count(int(bytes), "byte")
	}
	value, unit := float64(bytes)/(1<<10), 0
	for ; value >= 1000 && unit < 4; unit++ {
		value /= 1 << 10
	}
	digits := 0
	if value < 10 {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// span says a duration as precisely as people want it, as in "1.3 s" or
// "12 min".
func span(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
}
