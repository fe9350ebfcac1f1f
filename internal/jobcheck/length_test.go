package jobcheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

func TestLengths(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name   string
		change func(*job.Spec)
		what   string // the subject of the first error; "" if there must be none
		length int
	}{
		{"an argument that fits", func(s *job.Spec) { s.Command = []string{"a", long(131071)} }, "", 0},
		{"an argument", func(s *job.Spec) { s.Command = []string{"a", "b", long(131072)} }, `the argument "xxxx`, 131072},
		{"a program", func(s *job.Spec) { s.Command = []string{long(200000)} }, `the argument "xxxx`, 200000},
		{"a variable that fits", func(s *job.Spec) { s.Env = map[string]string{"BIG": long(131067)} }, "", 0},
		{"a variable", func(s *job.Spec) { s.Env = map[string]string{"BIG": long(131068)} }, `the environment variable "BIG"`, 131072},
		{"a variable of the trial", func(s *job.Spec) { s.Trial.Env = map[string]string{"BIG": long(131068)} }, `the environment variable "BIG"`, 131072},
		{"of the trial's command", func(s *job.Spec) { s.Trial.Command = []string{"a", long(131072)} }, `the argument "xxxx`, 131072},
		{"of the trial's arguments", func(s *job.Spec) { s.Trial.Args = []string{long(131072)} }, `the argument "xxxx`, 131072},
		{"of another program", func(s *job.Spec) { s.Apps = []job.App{{Ranks: 1, Command: []string{"a", long(131072)}}} }, `the argument "xxxx`, 131072},
		{"a variable of another program", func(s *job.Spec) {
			s.Apps = []job.App{{Ranks: 1, Command: []string{"a"}, Env: map[string]string{"BIG": long(131068)}}}
		}, `the environment variable "BIG"`, 131072},
		{"by its template", func(s *job.Spec) {
			s.Command, s.CheckpointDir = []string{"a", long(131066) + "{{.CheckpointDir}}"}, "/ckpts"
		}, `the argument "xxxx`, 131072},
		{"on a retry", func(s *job.Spec) {
			s.Command, s.CheckpointDir = []string{"a", "{{if .ResumeFrom}}" + long(131072) + "{{end}}"}, "/ckpt"
		}, `the argument "xxxx`, 131072},
		{"by the last rank's number", func(s *job.Spec) { s.Command, s.Ranks = []string{"a", long(131070) + "{{.Rank}}"}, 11 }, `the argument "xxxx`, 131072},
		{"not by its template alone", func(s *job.Spec) { s.Command = []string{"a", long(131071) + "{{.CheckpointDir}}"} }, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := job.Default()
			s.Command, s.Workdir = []string{"a"}, "/"
			c.change(&s)
			err := jobcheck.Spec(s)
			var length *jobcheck.LengthError
			switch {
			case c.what == "" && err != nil:
				t.Error(err)
			case c.what != "" && (!errors.As(err, &length) || !strings.HasPrefix(length.What, c.what) || length.Length != c.length || length.Hint() == ""):
				t.Errorf("got %.200v, want %s of %d bytes", err, c.what, c.length)
			case len(c.what) > 0 && len(err.Error()) > 300:
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}
