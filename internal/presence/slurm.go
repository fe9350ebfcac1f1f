package presence

import (
	"context"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/slurmjob"
)

// SlurmEnd returns what Slurm says about the job of a run, if the controller of the run must have
// ended with that job. It returns "" if the job still runs, or if Slurm does not answer.
func SlurmEnd(ctx context.Context, b *job.BatchJob) string {
	if b == nil || b.System != "slurm" {
		return ""
	}
	j, err := slurmjob.Show(ctx, b.ID)
	switch {
	case err != nil:
		return ""
	case j.Restarts > b.Restarts:
		return fmt.Sprintf("Slurm has queued job %s again", b.ID)
	case j.Running():
		return ""
	}
	return fmt.Sprintf("Slurm shows job %s as %s", b.ID, j.State)
}

// NoteMissing tells the user what to do about a run whose controller may be gone. end is the
// result of SlurmEnd.
func NoteMissing(w io.Writer, run home.Run, c job.Controller, end string) {
	if end != "" {
		fmt.Fprintf(w, "gangrun: note: run %[1]s was lost with its job: %[2]s; gangrun report %[1]s shows how far it got\n", run.ID, end)
		return
	}
	fmt.Fprintf(w, "gangrun: note: the controller of run %s, %s, %s; %s\n", run.ID, Name(c), LockState(false, true), IfGone(run))
}
