package runclock

import (
	"sync"
	"time"
)

const (
	// mostLook bounds what one look adds to a silence. If more time has passed since the
	// look before, the process did not run in the rest of it.
	mostLook = 500 * time.Millisecond
	// leastPause is the time between two looks from which the process counts as paused.
	leastPause = time.Second
)

// Silence measures the time since the last contact with another process. It does not count time
// in which this process did not run, because the process could receive nothing then. The caller
// must call Since several times in each half second. The zero value is ready for use, and safe
// for concurrent use.
type Silence struct {
	mu      sync.Mutex
	looked  time.Time // the last look; zero if there was none
	contact time.Time // the last contact, as of looked
	silence time.Duration
	pause   time.Duration // how long this process was paused until resumed
	resumed time.Time
}

// Since returns the time that has passed since contact, which is the time of the last contact.
// It leaves out pauses of this process that began after the first call of Since.
func (s *Silence) Since(contact time.Time) time.Duration { return s.at(time.Now(), contact) }

func (s *Silence) at(now, contact time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.looked) { // another goroutine has looked since now was read
		return s.silence
	}
	from := s.looked
	switch {
	case s.looked.IsZero():
		s.contact, s.silence, from = contact, now.Sub(contact), now
	case contact.After(s.contact):
		s.contact, s.silence = contact, max(0, s.looked.Sub(contact))
		if contact.After(from) {
			from = contact
		}
	}
	s.silence += max(0, min(now.Sub(from), mostLook))
	if pause := now.Sub(s.looked); !s.looked.IsZero() && pause > leastPause {
		s.pause, s.resumed = pause, now
	}
	s.looked = now
	return s.silence
}

// Pause returns the length of the last pause of this process, and when the process resumed.
// Both are zero if there was no pause.
func (s *Silence) Pause() (d time.Duration, resumed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pause, s.resumed
}
