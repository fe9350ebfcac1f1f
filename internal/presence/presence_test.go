package presence

import (
	"slices"
	"testing"
	"time"
)

// TestSilence checks when a follower of a run is warned of a silence: first after some seconds, and then at intervals
// that double. Every event or output ends a silence. If the controller holds its lock, the first warning comes later.
func TestSilence(t *testing.T) {
	begun := time.Now()
	second := func(of int) time.Time { return begun.Add(time.Duration(of) * time.Second) }
	always := func(held bool) func(int) bool { return func(int) bool { return held } }
	for name, test := range map[string]struct {
		held   func(second int) bool
		word   int // the second of the only event; 0 if there is none
		warned []int
	}{
		"free":        {held: always(false), warned: []int{5, 10, 20, 40, 80, 160}},
		"held":        {held: always(true), warned: []int{60, 120, 240}},
		"a word":      {held: always(false), word: 50, warned: []int{5, 10, 20, 40, 55, 60, 70, 90, 130, 210}},
		"let go":      {held: func(at int) bool { return at < 70 }, warned: []int{60, 70, 140}},
		"taken again": {held: func(at int) bool { return at >= 8 }, warned: []int{5, 60, 120, 240}},
	} {
		var s Silence
		var warned []int
		for at := range 250 {
			heard := int64(0)
			if test.word > 0 && at >= test.word {
				heard = 1
			}
			if silent, due := s.Warn(second(at), heard, test.held(at)); due {
				warned = append(warned, at)
				if want := second(at).Sub(second(0)); heard == 0 && silent != want {
					t.Errorf("%s: silent for %s, want %s", name, silent, want)
				}
			}
		}
		if !slices.Equal(warned, test.warned) {
			t.Errorf("%s: warned at %d, want %d", name, warned, test.warned)
		}
	}
}
