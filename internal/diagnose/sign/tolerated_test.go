package sign

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

func TestTolerated(t *testing.T) {
	for text, want := range map[string]int{
		"rm: cannot remove 'x.o': No such file or directory\nmake: [Makefile:12: clean] Error 1 (ignored)\nmake: rc 0":           0,
		"rm: cannot remove 'x.o': No such file or directory\nmake: *** [Makefile:12: clean] Error 1":                             1,
		"free(): invalid pointer\njob.sh: line 12: 88 Aborted                 (core dumped) ./view || true":                      0,
		"free(): invalid pointer\nstep 1\nstep 2\nstep 3\njob.sh: line 12: 88 Aborted                 (core dumped) ./v || true": 1,
	} {
		if got := len(Find(Text{Lines: strings.Split(text, "\n"), Reason: func(int) job.Reason { return job.ReasonNone }}, rules.Standard()).Signs); got != want {
			t.Errorf("%q: %d signs", text, got)
		}
	}
}
