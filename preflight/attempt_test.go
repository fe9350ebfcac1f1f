package preflight

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// TestNoRoomForTrial: if the directories of a trial cannot be created, the place of the trial is released once,
// and the error names the directory.
func TestNoRoomForTrial(t *testing.T) {
	for _, test := range []struct {
		name, want string
		plays      []play
		setup      func(*scene)
		places     int
	}{
		{name: "no checkpoint directory", want: "cannot make the trial's checkpoint directory: ", places: 1,
			setup: func(s *scene) {
				s.spec.Trial.Mode = job.TrialUncontained
				s.Scratch = blocked(s, s.Scratch+"-2")
			}},
		{name: "no log directory of the second attempt", want: "cannot make the trial's log directory: ", places: 2,
			plays: []play{dies("killed: from outside")},
			setup: func(s *scene) { s.spec.Retries = 1; blocked(s, filepath.Join(s.LogDir, "trial2")) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, test.plays...)
			places, held := 0, 0
			s.Place = func(_ context.Context, ranks int, _ time.Duration, _ func(job.Event)) (job.Placement, func(), error) {
				p, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 8}}}, job.Excluded{})
				places, held = places+1, held+1
				return p, func() { held-- }, err
			}
			test.setup(s)
			_, err := s.Check(t.Context(), s.spec, func(job.Event) {})
			var path *fs.PathError
			if err == nil || !strings.Contains(err.Error(), test.want) || !errors.As(err, &path) || !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("the error is %v", err)
			}
			if places != test.places || held != 0 {
				t.Errorf("%d places were taken, and %d are still held", places, held)
			}
		})
	}
}

// blocked creates a file at path, so that nobody can create a directory there.
func blocked(s *scene, path string) string {
	s.t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}
