package stop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/text"
)

// lookEvery is the time between two looks of a controller for requests from other machines. Network file systems do not
// report changes.
const lookEvery = time.Second

// Describe returns what the user typed, and who typed it on which host.
func Describe(q home.StopRequest) string {
	command := "gangrun stop"
	if q.Now {
		command += " --now"
	}
	return text.Printable(fmt.Sprintf("%s (%s on %s)", command, q.User, q.By.Host))
}

// askLimit limits the time in which the controller must take a request.
const askLimit = 10 * time.Second

// askThroughDirectory asks a controller on another host to end its run. It waits until the controller has taken the
// request.
func askThroughDirectory(run home.Run, c job.Controller, now bool) error {
	ctx, stop := interrupt.Context()
	defer stop()
	request, err := run.AskStop(home.StopRequest{To: c, By: home.Self(), User: UserName(), Now: now, At: time.Now()})
	if err != nil {
		return &failure.Error{Code: failure.CodeInternal, Err: err, Hint: "type it on " + c.Host + ": gangrun stop " + run.ID}
	}
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	tick := time.NewTicker(lookEvery / 4)
	defer tick.Stop()
	for why := error(nil); !request.Taken(); {
		select {
		case <-tick.C:
			why = superseded(run, c)
		case <-limit.C:
			why = &failure.Error{
				Code: failure.CodeMayPass, Err: fmt.Errorf("the run's controller, %s, has not taken the request up within %s: the run goes on for all that is known here", presence.Name(c), askLimit),
				Hint: fmt.Sprintf("see on %[2]s whether it lives, and type there: gangrun stop %[1]s; if it is gone, gangrun stop --force %[1]s ends the run from here, and gangrun attach --force %[1]s goes on with it", run.ID, c.Host),
			}
		case <-ctx.Done():
			var left interrupt.Signal
			why = ctx.Err()
			if errors.As(context.Cause(ctx), &left) {
				why = failure.Exit(128 + int(left.Number))
			}
		}
		if why == nil {
			continue
		}
		back, err := request.Withdraw()
		switch {
		case err != nil:
			return errors.Join(why, err)
		case back && errors.Is(why, errEnded):
			return nil
		case back:
			return why
		}
		return nil // the controller has just taken the request
	}
	return nil
}

// errEnded is the reason for the withdrawal of a request if the run has ended.
var errEnded = errors.New("the run has ended")

// superseded returns the reason why a request to a controller can no longer have an effect. It returns nil if it still
// can.
func superseded(run home.Run, c job.Controller) error {
	s, err := run.Summary()
	switch {
	case err != nil:
		return err
	case s.State.Final():
		return errEnded
	case s.Controller != nil && *s.Controller != c:
		return &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("%s has become the run's controller meanwhile", presence.Name(*s.Controller)), Hint: "gangrun stop " + run.ID + " asks that one"}
	}
	return nil
}

// UserName returns the name of the user of this process.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}
