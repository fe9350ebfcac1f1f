package main

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

func TestFitsExec(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	spec := job.Default()
	spec.Command = []string{"a", long(1000), long(1000)}
	const limit = leastExec
	inherited := []string{"BIG=" + long(limit-ownExec-3000)}
	if err := fitsExec(spec, inherited, limit); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*job.Spec){
		"an argument more":        func(s *job.Spec) { s.Command = append(s.Command, long(1000)) },
		"a variable more":         func(s *job.Spec) { s.Env = map[string]string{"A": long(1000)} },
		"a variable of the trial": func(s *job.Spec) { s.Trial.Env = map[string]string{"A": long(1000)} },
		"a variable of one program": func(s *job.Spec) {
			s.Apps = []job.App{{Ranks: 1, Command: s.Command, Env: map[string]string{"A": long(1000)}}}
		},
		"a hundred short ones": func(s *job.Spec) { s.Command = append(s.Command, make([]string, 120)...) },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec
			s.Command = append([]string{}, spec.Command...)
			change(&s)
			err := fitsExec(s, inherited, limit)
			if err == nil || codeOf(err) != failure.CodeUsage || !strings.Contains(err.Error(), "the variable BIG takes ") || failure.Hint(err) == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	spec.Env = map[string]string{"BIG": "replaced"}
	spec.Command = append(spec.Command, long(1000))
	if err := fitsExec(spec, inherited, limit); err != nil {
		t.Error(err)
	}
}

// TestExecLimit: the kernel starts what is below the limit, and refuses what is above.
func TestExecLimit(t *testing.T) {
	limit := execLimit()
	if limit < leastExec || limit > mostExec {
		t.Fatalf("the limit is %d", limit)
	}
	starts := func(size int) error {
		cmd := exec.Command("/bin/true")
		cmd.Env = []string{}
		for size -= 100; size > 0; size -= 100000 + 1 + pointer {
			cmd.Args = append(cmd.Args, strings.Repeat("x", min(size, 100000)))
		}
		return cmd.Run()
	}
	if err := starts(limit - ownExec); err != nil {
		t.Error(err)
	}
	if err := starts(limit + ownExec); err == nil || !strings.Contains(err.Error(), unix.E2BIG.Error()) {
		t.Errorf("got %v, want %v", err, unix.E2BIG)
	}
}
