package launcher

import (
	"sync"
	"time"
)

// vigilMost is how much one look of a Vigil adds to a silence at most: what is beyond
// that since the look before, this process did not live through.
const vigilMost = 500 * time.Millisecond

// gapLeast is how late a look must come for this process to count as stopped.
const gapLeast = time.Second

// Vigil measures the silence of somebody by looks at when they were heard last, of
// which there must be several in each half second. Where a look comes late, this
// process was stopped, or got no processor, and could hear nobody meanwhile: that
// does not count as silence.
type Vigil struct {
	mu      sync.Mutex
	looked  time.Time     // the last look; zero is never
	heard   time.Time     // what that has found
	silence time.Duration // at looked
	gap     time.Duration // how long this process could hear nobody before woke; zero is never
	woke    time.Time
}

// Silence looks: it returns how long nothing was heard of who was heard last at heard.
// The first look takes heard as it is.
func (v *Vigil) Silence(heard time.Time) time.Duration { return v.at(time.Now(), heard) }

func (v *Vigil) at(now, heard time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Before(v.looked) { // somebody else has looked meanwhile
		return v.silence
	}
	from := v.looked
	switch {
	case v.looked.IsZero():
		v.heard, v.silence, from = heard, now.Sub(heard), now
	case heard.After(v.heard):
		v.heard, v.silence = heard, max(0, v.looked.Sub(heard))
		if heard.After(from) {
			from = heard
		}
	}
	v.silence += max(0, min(now.Sub(from), vigilMost))
	if gap := now.Sub(v.looked); !v.looked.IsZero() && gap > gapLeast {
		v.gap, v.woke = gap, now
	}
	v.looked = now
	return v.silence
}

// Gap returns how long this process could hear nobody when that was so last, and until
// when; zero where it never was.
func (v *Vigil) Gap() (gap time.Duration, woke time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gap, v.woke
}
