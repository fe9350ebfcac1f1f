package top

import (
	"context"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/internal/vitals"
)

const (
	// lookEvery is how often the live file of a run is read.
	lookEvery = time.Second
	// stateEvery is how often it is checked that the controller is there.
	stateEvery = 5 * time.Second
)

// source reads what there is to show of a run, from the files in the run's directory only: the run's
// controller may be on another machine.
type source struct {
	run home.Run

	mu       sync.Mutex // guards what follows
	follower *view.Follower
	trouble  string
	life     *vitals.Vitals
	since    time.Time // when life was first seen, by the clock of this machine
	state    job.State // by the look at the controller; empty while all is well
}

func newSource(run home.Run) *source { return &source{run: run, follower: view.NewFollower(run)} }

// Follow reads until ctx ends.
func (s *source) Follow(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(func() {
		_, err := journal.Follow(ctx, s.run.JournalPath(), 0, func(e job.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.follower.Add(e)
		})
		if err != nil && ctx.Err() == nil {
			s.set(func() { s.trouble = s.run.Explain(err).Error() })
		}
	})
	look, check := time.NewTicker(lookEvery), time.NewTicker(stateEvery)
	defer look.Stop()
	defer check.Stop()
	for s.look(); ; {
		select {
		case <-look.C:
			s.look()
		case <-check.C:
			s.check()
		case <-ctx.Done():
			reading.Wait()
			return
		}
	}
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// look reads the live file.
func (s *source) look() {
	v, err := record.Vitals(s.run)
	s.set(func() {
		if err != nil {
			return // what is known grows old
		}
		if v == nil || s.life == nil || !v.At.Equal(s.life.At) {
			s.since = time.Now()
		}
		s.life = v
	})
}

// check looks whether the run still has a controller.
func (s *source) check() {
	sum, err := s.run.Summary()
	gone := presence.MissingController(s.run)
	s.set(func() {
		s.state = ""
		switch {
		case err != nil:
		case sum.State == job.StateLost, gone != nil:
			s.state = job.StateLost
		}
	})
}

// Data returns what is known at the time now.
func (s *source) Data(now time.Time) Data {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := Data{Status: s.follower.Status(s.state, s.life, now), News: s.follower.News(), At: now, Trouble: s.trouble}
	d.Hosts, d.GPUs = s.follower.Places()
	if d.Trouble == "" && d.Gang != nil {
		// The clock of the controller's machine may differ from this one.
		if seen := (&vitals.Vitals{At: s.since, Every: s.life.Every}); seen.Old(now) {
			d.Trouble = "these figures are " + view.Short(seen.Age(now)) + " old"
		}
	}
	return d
}
