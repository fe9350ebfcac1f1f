package output

import "time"

// A stream that trickles has more than 200 reads a second, and less than 100 kB a second. Each piece costs its
// reader, its log and all followers a wake-up, so that a rank that prints 600 lines a second took a tenth of a core
// from the ranks. Pump then reads only every 10 ms. The rank does not wait for that: even a pseudoterminal holds
// 4 kB.
const (
	paceReads = 16 // pace decides after so many reads
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
