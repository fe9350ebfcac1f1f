package runclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimer(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 3 * time.Millisecond, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			timer := NewTimer(d)
			<-timer.C
			if got := time.Since(begun); got != max(0, d) {
				t.Errorf("a timer of %s fired after %s", d, got)
			}
			time.Sleep(2 * time.Hour)
			select {
			case <-timer.C:
				t.Error("it fired twice")
			default:
			}
		})
	}
}

func TestTimerStopAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer(time.Second)
		time.Sleep(2 * time.Second) // the timer has fired, but nothing has received from C
		timer.Reset(time.Minute)
		begun := time.Now()
		time.Sleep(59 * time.Second)
		timer.Reset(time.Minute)
		<-timer.C
		if got := time.Since(begun); got != 119*time.Second {
			t.Errorf("it fired after %s", got)
		}
		timer.Reset(time.Second)
		timer.Stop()
		time.Sleep(time.Hour)
		select {
		case <-timer.C:
			t.Error("it fired after Stop")
		default:
		}
		timer.Stop()
	})
}

// TestTimerCountsOneStepOfAPause checks that a pause of the process counts as one step, however long the pause was.
func TestTimerCountsOneStepOfAPause(t *testing.T) {
	timer := NewTimer(time.Hour)
	defer timer.Stop()
	timer.mu.Lock()
	timer.timer.Stop()
	timer.left = 3 * timer.step
	timer.mu.Unlock()
	for range 2 {
		timer.count(timer.turn, timer.step)
		timer.timer.Stop()
		if len(timer.C) != 0 {
			t.Fatal("it fired with a step left")
		}
	}
	timer.count(timer.turn, timer.step)
	if len(timer.C) != 1 {
		t.Error("it has not fired after its last step")
	}
}

func TestWithTimeoutCause(t *testing.T) {
	late := errors.New("late")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := WithTimeoutCause(t.Context(), time.Second, late)
		<-ctx.Done()
		if time.Since(begun) != time.Second || !errors.Is(context.Cause(ctx), late) {
			t.Errorf("after %s: %v", time.Since(begun), context.Cause(ctx))
		}
		cancel()
		ctx, cancel = WithTimeoutCause(t.Context(), time.Second, late)
		cancel()
		cancel()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("cancelled: %v", context.Cause(ctx))
		}
	})
}

// TestSilence tests tables of looks. Times are in tenths of a second.
func TestSilence(t *testing.T) {
	const tenth = 100 * time.Millisecond
	for name, c := range map[string]struct {
		looks   []int       // the times of the looks
		contact map[int]int // the time of the last contact, from a look on
		want    int
		pause   int // the latest time in which this process did not run
	}{
		"first look":                     {looks: []int{36000}, want: 36000},
		"silent":                         {looks: []int{0, 1, 2, 3, 4, 5, 6, 7}, want: 7},
		"looks of many goroutines":       {looks: []int{0, 1, 1, 2, 2, 2, 3}, want: 3},
		"a late goroutine":               {looks: []int{0, 1, 3, 2, 4}, want: 4},
		"contact":                        {looks: []int{0, 1, 2, 3, 4}, contact: map[int]int{2: 2}, want: 2},
		"contact before the last look":   {looks: []int{0, 1, 2, 3, 4}, contact: map[int]int{3: 2}, want: 2},
		"paused":                         {looks: []int{0, 1, 2, 150, 151}, want: 2 + 5 + 1, pause: 148},
		"paused twice":                   {looks: []int{0, 1, 150, 151, 300, 301}, want: 1 + 5 + 1 + 5 + 1, pause: 149},
		"paused just after a contact":    {looks: []int{0, 2, 150, 151}, contact: map[int]int{150: 3}, want: 5 + 1, pause: 148},
		"paused, and contact after it":   {looks: []int{0, 1, 150, 152}, contact: map[int]int{152: 151}, want: 1, pause: 149},
		"few looks on an overloaded CPU": {looks: []int{0, 4, 8, 12, 16}, want: 16},
	} {
		var s Silence
		epoch := time.Now()
		var got time.Duration
		contact := epoch
		for _, at := range c.looks {
			if h, ok := c.contact[at]; ok {
				contact = epoch.Add(time.Duration(h) * tenth)
			}
			got = s.at(epoch.Add(time.Duration(at)*tenth), contact)
		}
		if got != time.Duration(c.want)*tenth {
			t.Errorf("%s: %s, want %s", name, got, time.Duration(c.want)*tenth)
		}
		if pause, resumed := s.Pause(); pause != time.Duration(c.pause)*tenth || resumed.IsZero() != (c.pause == 0) {
			t.Errorf("%s: paused for %s until %s, want %s", name, pause, resumed, time.Duration(c.pause)*tenth)
		}
	}
}
