package collect

import (
	"os"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSlow checks that the note about a full disk says what to do.
func TestSlow(t *testing.T) {
	c := &Collection{collector: New(t.Context(), nil), attempt: job.Attempt{LogDir: "/run/1"}, hosts: []*hostLogs{{}, {}}}
	if got, want := c.slow(), "the ranks' output is still on its way from their hosts"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.hosts[1].note(0, os.ErrPermission)
	for _, want := range []string{"permission", "free space in /run/1, or end gangrun with Ctrl-C twice", "30s"} {
		if got := c.slow(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c.hosts[1].note(1, nil)
	if got := c.slow(); strings.Contains(got, "free space") {
		t.Errorf("the log can be written again, but got %q", got)
	}
}
