package order

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestThereAndBack: the journal keeps the reason for which a run is ended.
func TestThereAndBack(t *testing.T) {
	const limit = job.Duration(9e9)
	for _, cause := range []error{
		Interrupted{Signal: syscall.SIGINT}, Interrupted{Signal: syscall.SIGTERM, By: "gangrun stop (ann on h0)"}, TimeLimit{limit},
		BatchEnd{job.EndedBatchLimit}, BatchEnd{job.EndedPreempted}, BatchEnd{job.EndedNodeFailed}, BatchEnd{job.EndedCancelled},
	} {
		o := Of(fmt.Errorf("wrapped: %w", cause))
		if o == nil || Cause(o, limit) != cause || cause.Error() == "" {
			t.Errorf("%#v becomes %+v", cause, o)
		}
	}
	if o := Of(errors.New("another")); o != nil {
		t.Errorf("got %+v", o)
	}
	if got := Cause(nil, 0); got != (Interrupted{Signal: syscall.SIGTERM}) {
		t.Errorf("an old record means %#v", got)
	}
}
