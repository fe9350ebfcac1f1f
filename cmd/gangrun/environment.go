package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor"
)

// environmentName is the file of a run's directory by which a later controller sees
// whether its environment is the one that the run was started in.
const environmentName = "environment.json"

// maxRecord is more bytes than any file has that gangrun keeps beside a journal.
const maxRecord = 64 << 20

// marks are of each variable of an environment one byte of its hash. That is too
// little to tell the value by, from the files of however many runs, and enough to
// see of 255 in 256 other values that they are others.
type marks map[string]byte

// marksOf marks what ranks find in an environment, and the job does not set itself.
func marksOf(env []string, spec job.Spec) marks {
	m := marks{}
	for _, entry := range travelling(env) {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := spec.Env[name]; !set && !slices.Contains(spec.Secret, name) {
			m[name] = sha256.Sum256([]byte(entry))[0]
		}
	}
	return m
}

// write keeps the marks of a run that begins. Nothing depends on them: the disk is
// not waited for.
func (m marks) write(run home.Run) error {
	text, err := exact.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(run.Dir, environmentName), text, 0o600)
}

// readMarks returns those of a run; nil where it has none.
func readMarks(run home.Run) (m marks, err error) {
	text, err := safefile.ReadFile(filepath.Join(run.Dir, environmentName), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = exact.Unmarshal(text, &m)
	}
	return m, err
}

// unlike says in what the environment now differs from that of m; "" is in nothing.
func (m marks) unlike(now marks) string {
	var changed, missing, added []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if mark, ok := now[name]; !ok {
			missing = append(missing, name)
		} else if mark != m[name] {
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := m[name]; !ok {
			added = append(added, name)
		}
	}
	var words []string
	for _, part := range []struct {
		word  string
		names []string
	}{{"another value of ", changed}, {"without ", missing}, {"with ", added}} {
		if len(part.names) > 0 {
			words = append(words, part.word+text.Some(part.names, 6))
		}
	}
	return strings.Join(words, "; ")
}

// movedLauncher is a Launcher that tells, when it first starts a gang, in what the
// gang's environment is not that in which the run was started, and of an adopted one
// which of the run's hosts were not reached.
type movedLauncher struct {
	supervisor.Launcher
	probed *probed
	news   func() string // nil once it was told
}

// withNews makes the launcher of a run that was taken over tell so.
func (s *session) withNews(l supervisor.Launcher) supervisor.Launcher {
	if s.taken == nil {
		return l
	}
	return &movedLauncher{Launcher: l, probed: s.probed, news: func() string {
		before, err := readMarks(s.run)
		switch {
		case err != nil:
			return fmt.Sprintf("may differ: %v", err)
		case before == nil:
			return ""
		}
		return before.unlike(marksOf(os.Environ(), s.spec))
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
		if m.probed.wait(telling) == nil {
			m.probed.absent(single)
		}
	})
	defer wg.Wait()
	defer stop()
	return m.Launcher.Run(ctx, a, single)
}
