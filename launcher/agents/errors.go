package agents

import (
	"errors"
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
)

// The reasons why a host no longer has an agent.
var (
	ErrGone = errors.New("the agent was killed or has ended")
	// ErrHostGone means that the host no longer answers.
	ErrHostGone = errors.New("the host has closed its connections and does not answer any more")
	// ErrRestarted means that the host was booted again, so that its agent is gone.
	ErrRestarted = errors.New("the host was started anew")
	// ErrCannotStart means that the host answers, but cannot start an agent.
	ErrCannotStart = errors.New("the agent cannot be started")
)

// The reasons why an agent with a part of a gang is gone when another controller adopts the
// gang.
var (
	ErrEndedWithController = errors.New("it ran on the controller's own machine, and ended with the controller")
	ErrEnded               = errors.New("it has ended: it was killed, or had no contact for too long after its controller had died")
)

// ErrAgentGone means that an agent no longer answers, and that no other reason is known.
var ErrAgentGone = errors.New("the agent on its host is gone")

// StartError reports that no agent could be started on a host.
type StartError struct {
	Host string
	Err  error
}

// Error names the host and the reason.
func (e *StartError) Error() string { return fmt.Sprintf("start the agent on %s: %v", e.Host, e.Err) }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// Why returns the reason of a StartError, without the host, for messages that already name the
// host. It returns any other error unchanged.
func Why(err error) error {
	var start *StartError
	if errors.As(err, &start) {
		return start.Err
	}
	return err
}

// Reason returns the job.Reason that corresponds to the error of a lost host, or ReasonNone if none does.
func Reason(err error) job.Reason {
	var silent errSilent
	var paused errPaused
	var start *StartError
	switch {
	case errors.As(err, &silent):
		return job.ReasonHostSilent
	case errors.Is(err, ErrHostGone):
		return job.ReasonHostGone
	case errors.Is(err, ErrRestarted):
		return job.ReasonHostRestarted
	case errors.As(err, &paused):
		return job.ReasonControllerPaused
	case errors.Is(err, ErrGone), errors.Is(err, ErrAgentGone):
		return job.ReasonAgentGone
	case errors.As(err, &start) && !errors.Is(err, ErrCannotStart):
		return job.ReasonNotReached
	}
	return job.ReasonNone
}

// UnreachableError reports that a host cannot be reached, or that no agent can be started
// there. The gang may then be placed on other hosts.
type UnreachableError struct {
	Host string
	Err  error
}

// Error returns the reason.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreached is a host that has no agent.
type Unreached struct {
	Host string
	Err  error
}

// Lasting is an error that says whether a person has to fix the problem. Errors of a Dialer may be Lasting. A
// person has to fix a refused login, for example, but not a host that is down.
type Lasting interface {
	error
	Lasting() bool
}

// Lasting returns true if it is useless to try again later.
func (u Unreached) Lasting() bool {
	var lasting Lasting
	return errors.As(u.Err, &lasting) && lasting.Lasting()
}

// Unreachable returns the errors in err if all of them are about unreachable hosts, and otherwise nil. The keys
// are the names of the hosts.
func Unreachable(err error) map[string]error {
	away := map[string]error{}
	all := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		all = many.Unwrap()
	}
	for _, one := range all {
		var gone *UnreachableError
		if !errors.As(one, &gone) {
			return nil
		}
		away[gone.Host] = one
	}
	return away
}
