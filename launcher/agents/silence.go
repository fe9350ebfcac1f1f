package agents

import (
	"sync"
	"time"
)

// maxStep is how much one reading adds to the silence at most. In any longer time since the
// reading before, this process did not run.
const maxStep = 500 * time.Millisecond

// minGap is how late a reading must come for this process to count as stopped.
const minGap = time.Second

// SilenceMeter measures how long a host has been silent. It counts only time in which this process
// really ran. The caller must read it several times in each half second. If a reading comes late,
// this process was stopped or got no processor, and the meter does not count that time.
type SilenceMeter struct {
	mu      sync.Mutex
	looked  time.Time     // time of the last reading; zero before the first one
	heard   time.Time     // the time of contact at the last reading
	silence time.Duration // at the last reading
	gap     time.Duration // length of the last pause of this process, which ended at woke; zero if there was none
	woke    time.Time
}

// Silence reads the meter. It returns the time since contact, which is the time of the last
// contact. It leaves out pauses of this process, but not those before the first reading.
func (v *SilenceMeter) Silence(contact time.Time) time.Duration { return v.at(time.Now(), contact) }

func (v *SilenceMeter) at(now, heard time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Before(v.looked) { // another goroutine has read the meter in the meantime
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
	v.silence += max(0, min(now.Sub(from), maxStep))
	if gap := now.Sub(v.looked); !v.looked.IsZero() && gap > minGap {
		v.gap, v.woke = gap, now
	}
	v.looked = now
	return v.silence
}

// Gap returns the length and the end of the last pause of this process. Both are zero if there
// was none.
func (v *SilenceMeter) Gap() (gap time.Duration, woke time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gap, v.woke
}
