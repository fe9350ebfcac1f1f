package noskip

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that only records how it ends.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestSkip(t *testing.T) {
	for value, want := range map[string]recorder{
		"":  {skipped: "no torch"},
		"0": {skipped: "no torch"},
		"1": {failed: "no torch (GANGRUN_TEST_NOSKIP=1: no test may be skipped)"},
	} {
		t.Setenv(Env, value)
		r := &recorder{}
		done, went := make(chan struct{}), false
		go func() {
			defer close(done)
			Skip(r, "no %s", "torch")
			went = true
		}()
		if <-done; *r != want || went {
			t.Errorf("%s=%s: skipped %q, failed %q, went on %t; want skipped %q, failed %q", Env, value, r.skipped, r.failed, went, want.skipped, want.failed)
		}
	}
}
