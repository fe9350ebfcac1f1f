package userenv

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

func TestCheckSize(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	spec := job.Default()
	spec.Command = []string{"a", long(1000), long(1000)}
	const limit = minSize
	inherited := []string{"BIG=" + long(limit-reserve-3000)}
	if err := CheckSize(spec, inherited, limit); err != nil {
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
			err := CheckSize(s, inherited, limit)
			if err == nil || failure.Code(err) != failure.CodeUsage || !strings.Contains(err.Error(), "the variable BIG takes ") || failure.Hint(err) == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	spec.Env = map[string]string{"BIG": "replaced"}
	spec.Command = append(spec.Command, long(1000))
	if err := CheckSize(spec, inherited, limit); err != nil {
		t.Error(err)
	}
}

// TestSizeLimit checks that the kernel starts a program whose arguments and environment are just below the limit, and
// refuses one above it.
func TestSizeLimit(t *testing.T) {
	limit := SizeLimit()
	if limit < minSize || limit > maxSize {
		t.Fatalf("the limit is %d", limit)
	}
	starts := func(size int) error {
		cmd := exec.Command("/bin/true")
		cmd.Env = []string{}
		for size -= 100; size > 0; size -= 100000 + 1 + pointerSize {
			cmd.Args = append(cmd.Args, strings.Repeat("x", min(size, 100000)))
		}
		return cmd.Run()
	}
	if err := starts(limit - reserve); err != nil {
		t.Error(err)
	}
	if err := starts(limit + reserve); err == nil || !strings.Contains(err.Error(), unix.E2BIG.Error()) {
		t.Errorf("got %v, want %v", err, unix.E2BIG)
	}
}
