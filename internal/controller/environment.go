package controller

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor"
)

// takeoverLauncher is the Launcher of a run that was taken over. Before it starts its first gang, it emits a note about
// the differences between the gang's environment and the environment in which the run was started. For an adopted gang,
// it reports which of the run's hosts were not reached.
type takeoverLauncher struct {
	supervisor.Launcher
	probed     *hosts.Found
	difference func() string // returns the differences between the environments; nil after they have been reported
}

// noteTakeover returns l, or a takeoverLauncher for it if the run was taken over.
func (s *session) noteTakeover(l supervisor.Launcher) supervisor.Launcher {
	if s.taken == nil {
		return l
	}
	return &takeoverLauncher{Launcher: l, probed: s.probed, difference: func() string {
		before, err := userenv.ReadHashes(s.run.Dir)
		switch {
		case err != nil:
			return fmt.Sprintf("may differ: %v", err)
		case before == nil:
			return ""
		}
		return before.Difference(userenv.HashesOf(os.Environ(), s.spec))
	}}
}

// Run implements supervisor.Launcher.
func (m *takeoverLauncher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if !a.Adopt && m.difference != nil {
		if difference := m.difference(); difference != "" {
			emit(job.Event{Kind: job.KindNote, Text: text.Printable(fmt.Sprintf("attempt %d has the environment of gangrun attach, not that of gangrun run: %s", a.Number, difference))})
		}
		m.difference = nil
	}
	if !a.Adopt {
		return m.Launcher.Run(ctx, a, emit)
	}
	var one sync.Mutex
	single := func(e job.Event) {
		one.Lock()
		defer one.Unlock()
		emit(e)
	}
	reporting, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { // there is no placement, so nothing else would report it
		if m.probed.Wait(reporting) == nil {
			m.probed.ReportUnreached(single)
		}
	})
	defer wg.Wait()
	defer stop()
	return m.Launcher.Run(ctx, a, single)
}
