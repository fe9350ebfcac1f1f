package view

import (
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/job"
)

func TestPrintHistory(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	var b strings.Builder
	err := PrintHistory(&b, []history.Entry{
		{Run: "r2", Ended: at, Command: []string{"python3", "a b.py", "--the-longest-of-all-arguments"}, State: job.StateFailed, Times: 3,
			Failure: history.Failure{Category: job.SemanticError, Signature: "python-key-error", Rank: 0, Step: 7, Text: "KeyError: '\x1b[31m\n'"}},
		{Run: "r1", Ended: at, Name: "digits", State: job.StateFailed, Times: 1, Failure: history.Failure{Category: job.Unknown, Step: 0, Text: "?"}},
		{Run: "r0", Ended: at, Name: "digits", State: job.StateSucceeded, Failure: history.Failure{Step: -1, Text: "every rank ended well"}},
	})
	want := strings.Join([]string{
		"ENDED                RUN  NAME                              STATE      CAUSE                                      STEP  TEXT",
		`2026-03-01 12:00:00  r2   python3 'a b.py' --the-longes...  failed     semantic-error (python-key-error), 3 times  7     KeyError: ' '`,
		"2026-03-01 12:00:00  r1   digits                            failed     unknown                                    0     ?",
		"2026-03-01 12:00:00  r0   digits                            succeeded                                                   every rank ended well", "",
	}, "\n")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if err != nil || squeeze(b.String()) != squeeze(want) || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
}
