package progress

import (
	"strings"
	"testing"
	"time"
)

func TestRaised(t *testing.T) {
	const trace = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    f()\n"
	for name, c := range map[string]struct {
		before, after string // after is printed some time after before
		want          bool
	}{
		"nothing":                  {before: "step 1\n"},
		"an exception":             {before: trace + "RuntimeError: boom\n", want: true},
		"without a message":        {before: trace + "KeyboardInterrupt\n", want: true},
		"of a package":             {before: trace + "torch.cuda.OutOfMemoryError: full\n", want: true},
		"a message of three lines": {before: trace + "RuntimeError: boom\nfirst\nsecond\n", want: true},
		"two in a chain":           {before: trace + "ValueError: a\n\nDuring handling of the above exception, another exception occurred:\n\n" + trace + "KeyError: 'b'\n", want: true},
		"an unfinished one":        {before: trace},
		"it goes on":               {before: trace + "RuntimeError: boom\n", after: "step 2\n"},
		"an empty line follows":    {before: trace + "RuntimeError: boom\n", after: "\n", want: true},
	} {
		var p Rank
		var s raise
		now := time.Now()
		for _, part := range []string{c.before, c.after} {
			for line := range strings.Lines(part) {
				s.line(&p, []byte(strings.TrimSuffix(line, "\n")), now)
			}
			now = now.Add(time.Minute)
		}
		if got := p.Sample().Raised; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
