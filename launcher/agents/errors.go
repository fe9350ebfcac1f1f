package agents

import (
	"errors"
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
)

// Why a host has no agent any more: the host reports that, cannot be asked, or cannot start one.
var (
	ErrGone = errors.New("the agent was killed or has ended")
	// ErrHostGone means that the host cannot be asked: it no longer answers.
	ErrHostGone = errors.New("the host has closed its connections and does not answer any more")
	// ErrRestarted means that the agent and all else in the host's memory is gone.
	ErrRestarted = errors.New("the host was started anew")
	// ErrCannotStart is part of the errors of hosts that answer, but cannot start an agent.
	ErrCannotStart = errors.New("the agent cannot be started")
)

// Why an agent that had a part of a gang is gone when another controller adopts the gang.
var (
	ErrEndedWithController = errors.New("it ran on the controller's own machine, and ended with the controller")
	ErrEnded               = errors.New("it has ended: it was killed, or had no contact for too long after its controller had died")
)

// ErrAgentGone is why an agent no longer answers if nothing else is known.
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

// Why returns the reason of a StartError, or err itself if it is another error: for
// messages that name the host already.
func Why(err error) error {
	var start *StartError
	if errors.As(err, &start) {
		return start.Err
	}
	return err
}

// Reason returns what an error says about a lost host; empty if it says nothing that
// job.Reason has a value for.
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
// there. A gang may be placed on other hosts.
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

// Lasting is an error of a Dialer that may need a person to fix it: a refused login does, a
// host that is down does not.
type Lasting interface {
	error
	Lasting() bool
}

// Lasting reports whether trying again later cannot help.
func (u Unreached) Lasting() bool {
	var lasting Lasting
	return errors.As(u.Err, &lasting) && lasting.Lasting()
}

// Unreachable returns the errors of hosts that cannot be reached, by the hosts' names. It
// returns nil if err contains an error of another kind.
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
