package output

import "time"

// Pump pauses for 10 ms between two reads of a stream if it would otherwise make more than 200 reads a second, and if
// these return less than 100 kB a second. Each read wakes up the log and everything that follows the log. Without the
// pauses, gangrun needed a tenth of a core for a rank that printed 600 lines a second. The rank need not wait for Pump,
// because even a pseudoterminal holds 4 kB.
const (
	paceReads = 16 // pace decides once in this many reads
	paceGap   = 5 * time.Millisecond
	pacePause = 10 * time.Millisecond
	paceBytes = 100e3 // a second
)

// pace decides whether Pump pauses between reads.
type pace struct {
	began time.Time // when the first of these reads began
	reads int
	bytes int
	pause time.Duration
}

// next returns how long Pump pauses after a read that has returned n bytes now.
func (p *pace) next(now time.Time, n int) time.Duration {
	p.bytes += n
	if p.reads++; p.reads < paceReads {
		return p.pause
	}
	took := now.Sub(p.began)
	quick := took < paceReads*(paceGap+p.pause)
	few := float64(p.bytes) < paceBytes*took.Seconds()
	*p = pace{began: now}
	if quick && few {
		p.pause = pacePause
	}
	return p.pause
}
