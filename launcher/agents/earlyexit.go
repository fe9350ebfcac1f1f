package agents

import (
	"cmp"
	"fmt"

	"github.com/gangrun/gangrun/internal/limits"
)

// EarlyExitError reports that an agent ended before it answered, for instance because its
// host allows it too few processes, descriptors or memory.
type EarlyExitError struct {
	Host  string
	Local bool // the agent was on this machine
	err   error
}

// Error names the host.
func (e *EarlyExitError) Error() string {
	return fmt.Sprintf("the agent on %s ended before it answered", e.Host)
}

// Unwrap returns the error of the connection.
func (e *EarlyExitError) Unwrap() error { return e.err }

// Hint says where the user should look for the reason.
func (e *EarlyExitError) Hint() string {
	if e.Local {
		return cmp.Or(limits.Processes(), "read its log, agents/"+e.Host+".log of the run's directory")
	}
	return fmt.Sprintf("look at the limits on %s, and raise those that are small: ulimit -u; ulimit -n; ulimit -v", e.Host)
}
