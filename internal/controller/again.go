package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/controller/batchend"
	"github.com/gangrun/gangrun/internal/controller/requeue"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/slurmjob"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// resumed returns the spec of a run. If Slurm has started the job again, the run resumes.
func resumed(spec job.Spec) job.Spec {
	j, ok := batchend.Here(os.LookupEnv)
	if ok && j.Restarts > 0 && spec.Requeue > 0 && spec.CheckpointDir != "" {
		spec.Resume = true
	}
	return spec
}

// earlierLegs returns the events of earlier runs of the same command. Earlier starts of this batch job have made these
// runs.
func (s *session) earlierLegs() (legs [][]job.Event) {
	here, ok := batchend.Here(os.LookupEnv)
	if !ok || here.Restarts == 0 || s.spec.Requeue == 0 {
		return nil
	}
	ticket, err := requeue.Read(s.home, here.ID)
	for _, leg := range ticket.Legs {
		if leg.Run == "" {
			continue // the controller of that run could not write it
		}
		run, findErr := home.Find(s.home, leg.Run)
		if findErr != nil {
			err = errors.Join(err, findErr)
			continue
		}
		events, _, readErr := record.Events(run)
		err = errors.Join(err, readErr)
		if spec := record.Spec(events); spec != nil && slices.Equal(spec.Command, s.spec.Command) {
			legs = append(legs, events)
		}
	}
	if err != nil {
		s.say("", fmt.Sprintf("the limits on restarts do not count all earlier starts of job %s: %v", here.ID, err))
	}
	return legs
}

// requeue makes Slurm requeue the job of a run that has ended, if the user wants that and it may help. It shows what it
// does.
func (s *session) requeue(r runreport.Report) {
	if s.spec.Requeue == 0 || r.State == job.StateCancelled {
		return
	}
	here, ok := batchend.Here(os.LookupEnv)
	if !ok {
		s.say("", "the job is not queued again: gangrun is not in a Slurm job")
		return
	}
	if err := s.requeueJob(here, r); err != nil {
		s.show.Say(fmt.Sprintf("error: job %s could not be queued again: %v", here.ID, err))
		s.show.Say("hint: submit it again; --resume goes on from the newest good checkpoint")
	}
}

// requeueJob decides whether the job is queued again, and carries the decision out.
func (s *session) requeueJob(here batchend.Job, r runreport.Report) error {
	if r.State == job.StateSucceeded {
		return requeue.Remove(s.home, here.ID)
	}
	ticket, err := requeue.Read(s.home, here.ID)
	if err != nil {
		return err
	}
	if here.Restarts == 0 {
		ticket = requeue.Ticket{} // the ticket belongs to an earlier job with the same ID
	}
	leg := requeue.LegOf(r)
	for len(ticket.Legs) < here.Restarts { // a leg is missing if its controller could not write it
		ticket.Legs = append(ticket.Legs, requeue.Leg{Category: job.HostLost})
	}
	d := requeue.Decide(ticket.Legs, leg, r.MayHelp, s.spec.Requeue)
	ticket.Legs = append(ticket.Legs, leg)
	if err := ticket.Write(s.home, here.ID); err != nil {
		return err
	}
	if !d.Requeue {
		s.say("", fmt.Sprintf("job %s is not queued again: %s", here.ID, d.Why))
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*slurmjob.Limit)
	defer cancel()
	j, err := slurmjob.Show(ctx, here.ID)
	if err != nil {
		return err
	}
	if j.Restarts > here.Restarts {
		s.say("", fmt.Sprintf("Slurm has queued job %s again (%s)", here.ID, d.Why))
		return nil
	}
	without := ""
	if len(d.Without) > 0 {
		without = ", without " + strings.Join(d.Without, ", ")
		s.say("", fmt.Sprintf("an administrator can take the faulty nodes out of use: scontrol update NodeName=%s State=DRAIN Reason=%q", strings.Join(d.Without, ","), string(leg.Category)))
	}
	s.say("", fmt.Sprintf("job %s is queued again (%s%s)", here.ID, d.Why, without))
	return slurmjob.Requeue(ctx, j, d.Without)
}
