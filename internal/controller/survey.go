package controller

import (
	"context"
	"errors"

	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/preflight/compare"
	"github.com/gangrun/gangrun/supervisor"
)

// surveyor makes the hosts of a run answer surveys for the preflight.
type surveyor struct {
	spec     job.Spec
	launcher *launcher.Launcher
	probed   *hosts.Found
	verbose  bool         // show the table of hosts even if the hosts do not differ
	show     func(string) // shows a line of the matrix

	matrix *preflight.Matrix // the matrix of the last survey; nil before the first, and if there is only one host
	speeds []job.Speed       // the measured speeds
}

// Survey implements preflight.Surveyor, for the hosts that have been reached.
func (s *surveyor) Survey(ctx context.Context, ask job.Survey) ([]job.Facts, error) {
	inventory, err := s.probed.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := s.launcher.Survey(ctx, inventory.Hosts, ask)
	for err != nil && ctx.Err() == nil && s.probed.Drop(err) { // a host was lost meanwhile
		if inventory, err = s.probed.Inventory(ctx); err == nil {
			facts, err = s.launcher.Survey(ctx, inventory.Hosts, ask)
		}
	}
	if err == nil {
		s.compare(facts)
	}
	return facts, stalled(err)
}

// Measure implements preflight.Surveyor, for the hosts that have been reached.
func (s *surveyor) Measure(ctx context.Context, m job.Measure) ([]job.Speed, error) {
	inventory, err := s.probed.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	s.speeds, err = s.launcher.Measure(ctx, inventory.Hosts, m)
	for err != nil && ctx.Err() == nil && s.probed.Drop(err) { // a host was lost meanwhile
		if inventory, err = s.probed.Inventory(ctx); err == nil {
			s.speeds, err = s.launcher.Measure(ctx, inventory.Hosts, m)
		}
	}
	if err == nil && s.verbose {
		for _, line := range compare.Table(s.speeds) {
			s.show(text.Printable(line))
		}
	}
	return s.speeds, err
}

// stalled returns err. If err says that an agent has not looked at files in time, stalled turns it into an error of the
// file system.
func stalled(err error) error {
	if errors.As(err, new(*launcher.LookError)) {
		return supervisor.StorageError{Err: err}
	}
	return err
}

// compare compares the facts of the hosts. It shows the matrix if a host is odd, or if the user wants to see the
// matrix.
func (s *surveyor) compare(facts []job.Facts) {
	if len(facts) < 2 {
		return
	}
	m := preflight.Compare(s.spec, facts)
	s.matrix = &m
	if !s.verbose && !m.Odd() {
		return
	}
	for _, line := range m.Lines(s.verbose) {
		s.show(text.Printable(line))
	}
}
