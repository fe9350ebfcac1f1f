// Package inspect lets other processes look at a run. A controller uses it to write the live file of the run
// (vitals.json: the newest figures of the ranks), and to answer requests for the stacks of the ranks. Other
// processes use it to make such requests. A request is a file in the directory of the run.
package inspect

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
)

const (
	// writeEvery is the shortest time between two writes of the live file.
	writeEvery = 2 * time.Second
	// manyRanks is the largest number of ranks for which the file is written every writeEvery. With more
	// ranks, the time between two writes is longer.
	manyRanks = 256
)

// Live writes the live file of a run.
type Live struct {
	run  home.Run
	done chan struct{}
	wg   sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	fold vitals.Fold
	news bool          // pulses have arrived since the last write
	last vitals.Vitals // the figures that were last written for each rank of the latest attempt
}

// StartLive starts to write the live file of a run. The caller must call Stop.
func StartLive(run home.Run) *Live {
	l := &Live{run: run, done: make(chan struct{})}
	l.wg.Go(l.write)
	return l
}

// Pulse adds pulses of an attempt's ranks to the figures. It does not wait until the live file is written.
func (l *Live) Pulse(attempt int, p job.Pulses) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fold.Add(time.Now(), attempt, p)
	l.news = true
}

// Last returns the figures that were last written for each rank of the latest attempt, including ranks that have
// ended. It returns nil if no figures were written. The caller must call Stop before Last.
func (l *Live) Last() *vitals.Vitals {
	if len(l.last.Ranks) == 0 {
		return nil
	}
	return &l.last
}

// Stop ends the writing and removes the live file, because nobody keeps it up to date any more.
func (l *Live) Stop() {
	close(l.done)
	l.wg.Wait()
	_ = l.run.RemoveVitals()
}

// write writes the file again and again. It ignores errors, because the journal reports if the file system cannot be
// written.
func (l *Live) write() {
	next := time.NewTimer(writeEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-l.done:
			return
		}
		next.Reset(l.once(time.Now()))
	}
}

// once writes the file if pulses have arrived, and returns the time until the next write.
func (l *Live) once(now time.Time) time.Duration {
	l.mu.Lock()
	if !l.news {
		l.mu.Unlock()
		return writeEvery
	}
	l.news = false
	v := l.fold.Vitals(now)
	l.last = v.With(l.last)
	l.mu.Unlock()
	every := pace(len(v.Ranks))
	v.Every = job.Duration(every)
	if text, err := json.Marshal(v); err == nil {
		_ = l.run.WriteVitals(append(text, '\n'))
	}
	return every
}

// pace returns the time between two writes of a file with that number of ranks.
func pace(ranks int) time.Duration {
	return writeEvery * time.Duration(max(1, (ranks+manyRanks-1)/manyRanks))
}
