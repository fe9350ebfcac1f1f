package job

import (
	"strings"
	"time"
)

// Patience is how long a gang waits for GPUs of a level of locality before it accepts the next wider level. It
// is one duration for all levels, as in "2m", or a duration for each of some levels, as in
// "island=10m,host=2m", or Strict. With Strict, the gang never accepts a wider level. In a job file, Patience
// may also be a mapping.
type Patience string

// DefaultPatience is how long, by default, a gang waits for GPUs of each Locality before it accepts a wider
// Locality.
const DefaultPatience = "2m"

// Strict is a Patience with which a gang never accepts a wider Locality. It may stand for all
// levels, or for one level, as in "host=strict".
const Strict = "strict"

// For returns how long a gang waits for a level; bounded is false if it waits for ever. If p does not name the
// level, For returns DefaultPatience.
func (p Patience) For(level Locality) (wait time.Duration, bounded bool) {
	if p == Strict {
		return 0, false
	}
	for part := range strings.SplitSeq(string(p), ",") {
		name, text, each := strings.Cut(part, "=")
		if !each {
			name, text = string(level), part
		}
		if name != string(level) {
			continue
		}
		if text == Strict {
			return 0, false
		}
		if d, err := ParseDuration(text); err == nil {
			return time.Duration(d), true
		}
	}
	d, _ := ParseDuration(DefaultPatience)
	return time.Duration(d), true
}
