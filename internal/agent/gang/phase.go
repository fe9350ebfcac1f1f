package gang

import (
	"fmt"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
)

// Phase is how far a gang has come. A gang never returns to an earlier phase.
type Phase int

// The phases of a gang.
const (
	Starting Phase = iota // its ranks are being started
	Running               // all ranks have been started, or one of them could not be started
	Ending                // its processes have been asked to end
	Killing               // its processes are being killed
	Over                  // no process is left, or the processes that are left cannot be killed
)

var phaseNames = [...]string{"starting", "running", "ending", "killing", "over"}

// String returns the name of the phase.
func (p Phase) String() string {
	if p < 0 || int(p) >= len(phaseNames) {
		return fmt.Sprintf("phase %d", int(p))
	}
	return phaseNames[p]
}

// progression is the phase of a gang. Several goroutines read it.
type progression struct {
	mu    sync.Mutex
	phase Phase
	ended time.Time // when the phase became Ending, by the host's clock
}

// get returns the phase.
func (p *progression) get() Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// advance sets the phase if to is a later phase. It reports whether that is so.
func (p *progression) advance(to Phase) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to <= p.phase {
		return false
	}
	if p.phase < Ending && to >= Ending {
		p.ended = hostclock.Now()
	}
	p.phase = to
	return true
}

// endingBefore reports whether the end of the gang had begun before the time at.
func (p *progression) endingBefore(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase >= Ending && at.After(p.ended)
}

// unlessOver calls f with the phase, and returns true. The phase does not change meanwhile. If the gang is over,
// unlessOver does nothing and returns false. f must not call other methods of p.
func (p *progression) unlessOver(f func(Phase)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase >= Over {
		return false
	}
	f(p.phase)
	return true
}
