package controller

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMountNote: the mounts that the job does not name are noted once.
func TestMountNote(t *testing.T) {
	s := job.Default()
	s.Workdir, s.Inputs, s.CheckpointDir, s.Container.Mounts = "/w", []string{"set", "/data/a"}, "/ck", []string{"/data"}
	for image, want := range map[string][]string{"": nil, "x:1": {"mounted in the containers besides what --mount names: /ck:rw, /w/set"}} {
		var n mountNote
		var got []string
		s.Image = image
		for range 2 {
			n.note(s, func(e job.Event) { got = append(got, e.Text) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}
