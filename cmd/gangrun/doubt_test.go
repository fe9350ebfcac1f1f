package main

import (
	"slices"
	"testing"
	"time"
)

// TestDoubt: a silence is told of once, and then at doubling intervals; every word
// ends it, and a controller that holds its lock is given more time.
func TestDoubt(t *testing.T) {
	begun := time.Now()
	second := func(of int) time.Time { return begun.Add(time.Duration(of) * time.Second) }
	always := func(held bool) func(int) bool { return func(int) bool { return held } }
	for name, test := range map[string]struct {
		held func(second int) bool
		word int // second of the only one
		told []int
	}{
		"free":        {held: always(false), told: []int{5, 10, 20, 40, 80, 160}},
		"held":        {held: always(true), told: []int{60, 120, 240}},
		"a word":      {held: always(false), word: 50, told: []int{5, 10, 20, 40, 55, 60, 70, 90, 130, 210}},
		"let go":      {held: func(at int) bool { return at < 70 }, told: []int{60, 70, 140}},
		"taken again": {held: func(at int) bool { return at >= 8 }, told: []int{5, 60, 120, 240}},
	} {
		var d doubt
		var told []int
		for at := range 250 {
			heard := int64(0)
			if test.word > 0 && at >= test.word {
				heard = 1
			}
			if silent, due := d.due(second(at), heard, test.held(at)); due {
				told = append(told, at)
				if want := second(at).Sub(second(0)); heard == 0 && silent != want {
					t.Errorf("%s: silent for %s, want %s", name, silent, want)
				}
			}
		}
		if !slices.Equal(told, test.told) {
			t.Errorf("%s: told at %d, want %d", name, told, test.told)
		}
	}
}
