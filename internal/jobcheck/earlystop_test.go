package jobcheck

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestInVain: settings about curves that could have no effect are refused, and the error says what to write.
func TestInVain(t *testing.T) {
	for _, c := range []struct {
		early  job.EarlyStop
		target string
		want   string // a part of the error; "" if there must be none
	}{
		{"reached=stop", "", "--target"},
		{"plateau=stop,will-miss=stop", "", "--target"},
		{"reached=stop,will-miss=stop", "0.5", ""},
		{"reached=advise", "", ""},
		{"stop", "", ""},
		{"slower=stop", "", "slower=advise"},
		{"below-peers=stop", "0.5", "below-peers=advise"},
	} {
		s := job.Default()
		s.Command, s.Ranks, s.Workdir, s.CheckpointDir = []string{"x"}, 1, "/work", "/ck"
		s.EarlyStop, s.Curve.Target = c.early, c.target
		err := Spec(s)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, target %q: %v, want %q", c.early, c.target, err, c.want)
		}
	}
}
