package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/presence"
)

const (
	// askLimit limits the wait for an answer.
	askLimit = lookEvery + restAfter + stacksLimit + 4*time.Second
	// checkEvery is the time between two looks for the answer.
	checkEvery = 100 * time.Millisecond
)

// Stacks asks the controller of a run for the stacks of the run's ranks. The controller may be on another
// machine. Stacks waits for 15 s at most.
func Stacks(ctx context.Context, run home.Run) (home.Stacks, error) {
	s, err := run.Summary()
	switch {
	case err != nil:
		return home.Stacks{}, err
	case s.State == job.StateLost || presence.MissingController(run) != nil:
		return home.Stacks{}, refuse("gangrun attach "+run.ID+" goes on with the run", "run %s has no controller that could look where its ranks are", run.ID)
	case s.State.Final():
		return home.Stacks{}, refuse("gangrun report "+run.ID+" tells where the ranks were if gangrun has found a hang", "run %s has ended: it is %s", run.ID, s.State)
	case s.Controller == nil:
		return home.Stacks{}, refuse("try again in a moment", "run %s is being created", run.ID)
	}
	asked, err := run.AskStacks(home.StacksRequest{To: *s.Controller, By: home.Self(), At: time.Now()})
	if err != nil {
		return home.Stacks{}, &failure.Error{Code: failure.CodeInternal, Err: err, Hint: "type it on " + s.Controller.Host + ": gangrun status --stacks " + run.ID}
	}
	defer func() { _ = asked.Withdraw() }()
	return wait(ctx, run, *s.Controller, asked)
}

// wait waits for the answer to a request.
func wait(ctx context.Context, run home.Run, c job.Controller, asked home.AskedStacks) (home.Stacks, error) {
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-tick.C:
		case <-look.C:
			if s, err := run.Summary(); err != nil || s.State.Final() || s.Controller != nil && *s.Controller != c {
				return home.Stacks{}, refuse("gangrun status "+run.ID+" tells where the run is", "run %s has ended, or has got another controller, before it answered", run.ID)
			}
		case <-limit.C:
			return home.Stacks{}, refuse(fmt.Sprintf("see on %s whether it is stopped, or waits for a file system", c.Host),
				"the run's controller, %s, has not answered within %s", presence.Name(c), askLimit)
		case <-ctx.Done():
			return home.Stacks{}, ctx.Err()
		}
		switch found, err := asked.Answer(); {
		case err != nil:
			return home.Stacks{}, err
		case found != nil && found.Refused != "":
			return home.Stacks{}, refuse("gangrun status "+run.ID+" tells where the run is", "run %s has no ranks now: %s", run.ID, found.Refused)
		case found != nil:
			return *found, nil
		}
	}
}

// refuse returns the error for a run whose stacks cannot be collected now.
func refuse(hint, format string, args ...any) error {
	return &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf(format, args...), Hint: hint}
}
