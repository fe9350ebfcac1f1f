package diagnose

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// records adds a traceback in a rank's error file.
func (g *gang) records(rank int, seconds float64, message string) *gang {
	return g.lines(job.SourceErrorFile, host(rank), rank, job.LogName(rank, "error.json"), seconds,
		"Traceback (most recent call last):\n  File \"train.py\", line 9, in main\n    step()\n"+message)
}

// TestErrorFile checks that a rank has died of what it wrote to its error file, however much it printed later. Of
// several ranks, the one that recorded its exception first counts. The rank has survived what it recorded long before
// its end.
func TestErrorFile(t *testing.T) {
	noise := strings.TrimSuffix(strings.Repeat("closing a worker\n", 200), "\n")
	for name, c := range map[string]struct {
		gang      *gang
		rank      int
		signature string
		text      string
		source    job.Source
	}{
		"buried": {
			new(gang).records(1, 10, "ValueError: no such shape").says(1, 13, noise).prints(1, 14, noise).exit(1, 15, job.Exit{Code: 1}).
				says(0, 15.1, closed).exit(0, 15.2, job.Exit{Code: 1, Stopped: true}),
			1, "python-value-error", "ValueError: no such shape (train.py line 9 in main)", job.SourceErrorFile,
		},
		"stderr was lost": {
			new(gang).records(2, 10, "KeyError: 'loss'").exit(2, 11, job.Exit{Code: 1}),
			2, "python-key-error", "KeyError: 'loss'", job.SourceErrorFile,
		},
		"on stderr, too": {
			new(gang).records(1, 10, "ValueError: no such shape").says(1, 10.01, raise("ValueError: no such shape")).exit(1, 10.5, job.Exit{Code: 1}),
			1, "python-value-error", "ValueError: no such shape", job.SourceErrorFile,
		},
		"who was first": {
			new(gang).records(1, 10.2, "ValueError: second").exit(1, 11, job.Exit{Code: 1}).records(3, 10.1, "ValueError: first").exit(3, 11.2, job.Exit{Code: 1}),
			3, "python-value-error", "ValueError: first", job.SourceErrorFile,
		},
		"who hung in its end": {
			new(gang).records(1, 10, "ValueError: first").says(1, 20, noise).
				says(0, 610, closed).exit(0, 611, job.Exit{Code: 1}).exit(1, 612, job.Exit{Signal: 15, Stopped: true}),
			1, "python-value-error", "ValueError: first", job.SourceErrorFile,
		},
		"survived": {
			new(gang).records(1, 10, "ValueError: caught").says(1, 20, noise).exit(1, 3600, job.Exit{Signal: 9}),
			1, "sigkill", "killed by SIGKILL", job.SourceAgent,
		},
	} {
		c.gang.Ranks = 4
		got := Diagnose(c.gang.Evidence)
		if got.Rank != c.rank || got.Signature != c.signature || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: got %s of rank %d: %s", name, got.Signature, got.Rank, got.Text)
		}
		if n := len(got.Evidence); n == 0 || got.Evidence[n-1].Source != c.source {
			t.Errorf("%s: the evidence is %+v, want it from %s", name, got.Evidence, c.source)
		}
	}
}
