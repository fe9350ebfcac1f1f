package outlook

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines has lines whose marks depend on the numbers in them.
var lines = []string{
	"exited with code 0", "exited with code 1", "exit status: 12", "rc=0", "rc=143", "status 1000", "returned 255", "code: 10.5%",
	"0 failed, 12 passed", "10 failed", "3 errors", "0 errors", "errors: 0", "without 12 errors", "100 errors: 05",
	"step 100/100", "step 99/100", "9 of 9 chunks", "1 of 1", "epoch 3 loss 0.25", "42%|####", "12 0.5 1e-3 7", "trial #3 done",
	"I0312 12:00:01.5 torch/distributed", "E12345 elastic", "Abort(123) on node 4", "retries left: 0", "retries left: 10", "0 attempts left",
	"attempt 3", "val_loss: 0.31", "best score = 12.5", "finished all 100 steps in 3 s", "stage 2 of 3 finished", "OK (12 tests)", "= 3 passed in 0.1s =",
	"total time: 12.5 s for 100 steps", "real	0m12.3s", "STOP 12", "ExitCode=0:0", "ExitCode=1:0", "total 120", "job 12 completed",
}

var number = regexp.MustCompile(`\d+`)

// TestReader checks that a Reader gives a line the same marks as Of, whatever lines of the same form it has read
// before.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Reader
		for range rapid.IntRange(1, 20).Draw(t, "lines") {
			line := number.ReplaceAllStringFunc(rapid.SampledFrom(lines).Draw(t, "line"), func(n string) string {
				if strings.Trim(n, "0") == "" || rapid.Bool().Draw(t, "same") {
					return n
				}
				return fmt.Sprint(rapid.IntRange(0, 1234567).Draw(t, "number"))
			})
			if got, want := r.Of(line), Of(line); got != want {
				t.Fatalf("%q: got %b, want %b", line, got, want)
			}
		}
	})
}

// TestMayCount checks that mayCount is true for each line that counted matches.
func TestMayCount(t *testing.T) {
	for _, line := range []string{"step 1/2", "[3 / 4]", "5 of 6 chunks", "7of8", "9 of9", "tokens/s 12", "a of b", "1 off 2", "end 1/", "/1"} {
		if counted.MatchString(line) && !mayCount(line) {
			t.Errorf("%q has a count", line)
		}
	}
	if mayCount("tokens/s 12 of them") {
		t.Error("a rate is no count")
	}
}
