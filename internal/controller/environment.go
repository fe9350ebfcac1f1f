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

// movedLauncher is a Launcher that tells, when it first starts a gang, in what the
// gang's environment is not that in which the run was started, and of an adopted one
// which of the run's hosts were not reached.
type movedLauncher struct {
	supervisor.Launcher
	probed *hosts.Found
	news   func() string // nil once it was told
}

// withNews makes the launcher of a run that was taken over tell so.
func (s *session) withNews(l supervisor.Launcher) supervisor.Launcher {
	if s.taken == nil {
		return l
	}
	return &movedLauncher{Launcher: l, probed: s.probed, news: func() string {
		before, err := userenv.ReadMarks(s.run.Dir)
		switch {
		case err != nil:
			return fmt.Sprintf("may differ: %v", err)
		case before == nil:
			return ""
		}
		return before.Difference(userenv.MarksOf(os.Environ(), s.spec))
	}}
}

// Run implements supervisor.Launcher.
func (m *movedLauncher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if !a.Adopt && m.news != nil {
		if news := m.news(); news != "" {
			emit(job.Event{Kind: job.KindNote, Text: text.Printable(fmt.Sprintf("attempt %d has the environment of gangrun attach, not that of gangrun run: %s", a.Number, news))})
		}
		m.news = nil
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
	telling, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { // no placement tells it
		if m.probed.Wait(telling) == nil {
			m.probed.ReportUnreached(single)
		}
	})
	defer wg.Wait()
	defer stop()
	return m.Launcher.Run(ctx, a, single)
}
