package job_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestParseStdin(t *testing.T) {
	for _, c := range []struct {
		text  string
		ranks int
		want  job.Stdin
	}{
		{"none", 1, job.StdinNone},
		{"all", 4, job.StdinAll},
		{"0", 1, "0"},
		{"3", 4, "3"},
		{"03", 4, "3"},
		{"+3", 4, "3"},
	} {
		if got, err := job.ParseStdin(c.text, c.ranks); err != nil || got != c.want {
			t.Errorf("%q of %d ranks: got %q, %v; want %q", c.text, c.ranks, got, err, c.want)
		}
	}
	for _, c := range []struct {
		text  string
		ranks int
		want  string
	}{
		{"", 1, `stdin "" is neither a rank nor all nor none`},
		{"All", 1, `stdin "All" is neither a rank nor all nor none`},
		{"1.0", 4, `stdin "1.0" is neither a rank nor all nor none`},
		{"99999999999999999999", 4, "neither a rank nor all nor none"},
		{"4", 4, "stdin names rank 4, but the gang has ranks 0 to 3"},
		{"-1", 4, "stdin names rank -1, but the gang has ranks 0 to 3"},
	} {
		got, err := job.ParseStdin(c.text, c.ranks)
		if err == nil || got != "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q of %d ranks: got %q, %v; want the error %q", c.text, c.ranks, got, err, c.want)
		}
	}
}

func TestStdinFeeds(t *testing.T) {
	for _, c := range []struct {
		stdin job.Stdin
		feeds [3]bool
	}{
		{job.StdinNone, [3]bool{}},
		{job.StdinAll, [3]bool{true, true, true}},
		{job.StdinRank(0), [3]bool{true, false, false}},
		{job.StdinRank(2), [3]bool{false, false, true}},
	} {
		for rank, want := range c.feeds {
			if got := c.stdin.Feeds(rank); got != want {
				t.Errorf("stdin %q feeds rank %d: %t, want %t", c.stdin, rank, got, want)
			}
		}
	}
}

func FuzzParseStdin(f *testing.F) {
	for _, text := range []string{"", "none", "all", "0", "7", "007", "+1", "-1", "1e1", "0x1", "９", "NONE"} {
		f.Add(text, 8)
	}
	f.Add("9223372036854775807", math.MaxInt)
	f.Add("0", 0)
	f.Fuzz(func(t *testing.T, text string, ranks int) {
		s, err := job.ParseStdin(text, ranks)
		if err != nil {
			if s != "" {
				t.Fatalf("%q gave %q beside the error %v", text, s, err)
			}
			return
		}
		if again, err := job.ParseStdin(string(s), ranks); err != nil || again != s {
			t.Fatalf("%q gave %q, which gives %q, %v", text, s, again, err)
		}
		if s == job.StdinNone || s == job.StdinAll {
			return
		}
		rank, err := strconv.Atoi(string(s))
		if err != nil || rank < 0 || rank >= ranks || !s.Feeds(rank) {
			t.Fatalf("%q of %d ranks gave %q, which feeds no rank of the gang", text, ranks, s)
		}
	})
}

func TestParseMode(t *testing.T) {
	for _, m := range job.OutputModes() {
		if got, err := job.ParseMode("output", string(m), job.OutputModes()); err != nil || got != m {
			t.Errorf("%q: got %q, %v", m, got, err)
		}
	}
	for text, want := range map[string]string{
		"":      `output "" is none of first, all, failed, none`,
		"First": `output "First" is none of first, all, failed, none`,
		"some":  `output "some" is none of first, all, failed, none`,
	} {
		if got, err := job.ParseMode("output", text, job.OutputModes()); err == nil || err.Error() != want || got != "" {
			t.Errorf("%q: got %q, %v; want the error %q", text, got, err, want)
		}
	}
}
