package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/slurmjob"
)

// slurmEnd returns what Slurm says of the job of a run, if the controller of the run must have ended
// with that job. It returns "" if the job still runs, or if Slurm does not say.
func slurmEnd(ctx context.Context, b *job.BatchJob) string {
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

// noteMissing writes what to do about a run whose controller was on another host, and may be gone.
// end is what slurmEnd says.
func noteMissing(w io.Writer, run home.Run, c job.Controller, end string) {
	if end == "" {
		presence.NoteMissing(w, run, c)
		return
	}
	fmt.Fprintf(w, "gangrun: note: run %[1]s was lost with its job: %[2]s; gangrun report %[1]s shows how far it has come\n", run.ID, end)
}
