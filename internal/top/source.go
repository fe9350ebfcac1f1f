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
	// lookEvery is the time between two readings of the live file.
	lookEvery = time.Second
	// stateEvery is the time between two checks whether the run still has a controller.
	stateEvery = 5 * time.Second
)

// source reads the data of a run. It reads only files in the run's directory, because the controller may be
// on another machine.
type source struct {
	run home.Run

	mu       sync.Mutex // guards the fields below
	follower *view.Follower
	trouble  string
	life     *vitals.Vitals
	since    time.Time // when life was first read, by the clock of this machine
	state    job.State // what the last check of the controller has found; empty if there is no problem
}

func newSource(run home.Run) *source { return &source{run: run, follower: view.NewFollower(run)} }

// Follow reads the files until ctx ends.
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
			return // s keeps the old data
		}
		if v == nil || s.life == nil || !v.At.Equal(s.life.At) {
			s.since = time.Now()
		}
		s.life = v
	})
}

// check checks whether the run still has a controller.
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

// Data returns the newest data at the time now.
func (s *source) Data(now time.Time) Data {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := Data{Status: s.follower.Status(s.state, s.life), News: s.follower.News(), At: now, Trouble: s.trouble}
	d.Hosts, d.GPUs = s.follower.Places()
	if d.Trouble == "" && d.Gang != nil {
		// The clock of the controller's machine may differ from that of this machine.
		if seen := (&vitals.Vitals{At: s.since, Every: s.life.Every}); seen.Old(now) {
			d.Trouble = "these figures are " + view.Short(seen.Age(now)) + " old"
		}
	}
	return d
}
