package launcher

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// lookLimit limits how long an agent looks at the files of a job. The agent runs at most four programs, with 10 s each,
// and hashes one file. If that takes longer, a file system hangs.
const lookLimit = 2 * time.Minute

// LookError reports that an agent did not read files in time.
type LookError struct {
	Host  string
	What  string // the files
	Limit time.Duration
}

// Error names the host and the files.
func (e *LookError) Error() string {
	return fmt.Sprintf("%s has not answered for %s: it was to look at %s; a file system there may hang", e.Host, e.Limit, e.What)
}

// looking returns a context that limits the wait for an agent that looks at files. what names the files.
func (l *Launcher) looking(ctx context.Context, a *agents.Agent, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.look, &LookError{Host: a.Host, What: what, Limit: l.look})
}

// unseen returns the error of an agent that has not looked at files before asking ended. If the limit has passed and
// the agent is on another machine, the error is an *agents.UnreachableError, because the gang cannot use that host.
func unseen(ctx, asking context.Context, a *agents.Agent, err error) error {
	if err = agents.Cause(asking, err); asking.Err() == nil || ctx.Err() != nil {
		return a.Failed(ctx, err)
	}
	if !a.Link.Local {
		err = &agents.UnreachableError{Host: a.Host, Err: err}
	}
	return err
}

// surveyed returns a text that names the files that a survey looks at.
func surveyed(ask job.Survey) string {
	of := []string{fmt.Sprintf("the directory %q", ask.Workdir)}
	if len(ask.Command) > 0 {
		of = append(of, fmt.Sprintf("the program %q", ask.Command[0]))
	}
	for i, input := range ask.Inputs {
		if i == mostInputs {
			of = append(of, fmt.Sprintf("%d more inputs", len(ask.Inputs)-i))
			break
		}
		of = append(of, fmt.Sprintf("the input %q", input))
	}
	if ask.CheckpointDir != "" {
		of = append(of, fmt.Sprintf("the checkpoint directory %q", ask.CheckpointDir))
	}
	return text.And(of)
}

// mostInputs limits how many inputs of a survey an error names.
const mostInputs = 4
