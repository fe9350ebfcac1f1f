// Package slurmjob asks Slurm about jobs, and requeues them.
package slurmjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Limit is the time limit of one request to Slurm. Without it, Slurm's commands would wait
// longer while slurmctld restarts.
const Limit = 10 * time.Second

// Job is what Slurm says of a job.
type Job struct {
	ID       string
	Task     string // as in 11_3 if the job is a task of a job array; otherwise the same as ID
	State    string // as in RUNNING
	Reason   string // why it is in that state, as in TimeLimit
	Restarts int    // how often it was requeued
	Requeue  bool   // Slurm may requeue it
	// End is when the time limit of the job ends it; zero if there is no limit.
	End       time.Time
	Preempted bool   // it is being preempted
	Excluded  string // nodes that the user or gangrun has excluded
	BatchHost string // the node on which its script runs
}

// Running reports whether the job still has its nodes.
func (j Job) Running() bool {
	switch j.State {
	case "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT":
		return true
	}
	return false
}

// ErrUnknown means that Slurm has no such job, or has forgotten it.
var ErrUnknown = errors.New("the job is not known to Slurm")

// Show asks Slurm for a job. Any error other than ErrUnknown means that Slurm did not answer.
func Show(ctx context.Context, id string) (Job, error) {
	out, err := scontrol(ctx, "-o", "show", "job", id)
	var failed *Error
	if errors.As(err, &failed) && strings.Contains(failed.Text, "Invalid job id") {
		return Job{}, ErrUnknown
	}
	if err != nil {
		return Job{}, err
	}
	for line := range strings.Lines(out) { // the ID of a task may be that of its job array, too
		if strings.HasPrefix(line, "JobId="+id+" ") {
			return parse(line)
		}
	}
	return parse(out)
}

// NodeDown reports whether Slurm counts a node as failed.
func NodeDown(ctx context.Context, node string) (bool, error) {
	out, err := scontrol(ctx, "-o", "show", "node", node)
	if err != nil {
		return false, err
	}
	for field := range strings.FieldsSeq(out) {
		if state, ok := strings.CutPrefix(field, "State="); ok {
			return strings.HasPrefix(state, "DOWN"), nil
		}
	}
	return false, fmt.Errorf("scontrol show node: no state in what it printed: %.200q", out)
}

// Error is the error of a command of Slurm, with what the command has printed.
type Error struct {
	Command string
	Text    string
	Err     error
}

// Error returns the command and what it printed.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s: %v", e.Command, e.Err)
	}
	return e.Command + ": " + e.Text
}

// Unwrap returns the error of the command.
func (e *Error) Unwrap() error { return e.Err }

// scontrol runs scontrol, with times as seconds.
func scontrol(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "scontrol", args...)
	cmd.Env = append(os.Environ(), "SLURM_TIME_FORMAT=%s")
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		text := strings.Join(strings.Fields(errs.String()), " ")
		return "", &Error{Command: "scontrol " + strings.Join(args, " "), Text: strings.ToValidUTF8(text, "?"), Err: err}
	}
	return out.String(), nil
}

// parse reads what "scontrol -o show job" prints: NAME=VALUE, separated by spaces. Values of
// some names may have spaces, too; none of these is read.
func parse(text string) (Job, error) {
	fields := map[string]string{}
	for _, field := range strings.Fields(text) {
		if name, value, ok := strings.Cut(field, "="); ok && fields[name] == "" {
			fields[name] = value
		}
	}
	j := Job{
		ID: fields["JobId"], State: fields["JobState"], Reason: fields["Reason"], Requeue: fields["Requeue"] == "1",
		Preempted: !none(fields["PreemptTime"]), BatchHost: fields["BatchHost"],
	}
	if j.ID == "" || j.State == "" {
		return j, fmt.Errorf("scontrol show job: no job in what it printed: %.200q", text)
	}
	j.Task = j.ID
	if _, err := strconv.Atoi(fields["ArrayTaskId"]); err == nil {
		j.Task = fields["ArrayJobId"] + "_" + fields["ArrayTaskId"]
	}
	if !none(fields["ExcNodeList"]) {
		j.Excluded = fields["ExcNodeList"]
	}
	j.Restarts, _ = strconv.Atoi(fields["Restarts"])
	if seconds, err := strconv.ParseInt(fields["EndTime"], 10, 64); err == nil && fields["TimeLimit"] != "UNLIMITED" {
		j.End = time.Unix(seconds, 0)
	}
	return j, nil
}

// none reports whether a value of scontrol means that there is none.
func none(value string) bool {
	switch value {
	case "", "None", "(null)", "Unknown", "N/A":
		return true
	}
	return false
}

// Ending is why Slurm ends a job, or a part of it.
type Ending string

// The endings.
const (
	Cancelled Ending = "cancelled"  // by scancel
	TimeLimit Ending = "time-limit" // the job's time limit is over
	Preempted Ending = "preempted"  // for another job
	Requeued  Ending = "requeued"   // by a user or by Slurm, which may have preempted it
	NodeFail  Ending = "node-fail"  // a node of the job has failed
)

// Ending returns why Slurm is ending the job. restarts is how often the job had been requeued
// when this process began (SLURM_RESTART_COUNT).
func (j Job) Ending(restarts int) Ending {
	switch {
	case j.Reason == "TimeLimit" || j.State == "TIMEOUT" || j.State == "DEADLINE":
		return TimeLimit
	case j.Preempted || j.State == "PREEMPTED":
		return Preempted
	case j.Reason == "NodeDown" || j.State == "NODE_FAIL":
		return NodeFail
	case j.Restarts > restarts:
		return Requeued
	}
	return Cancelled
}
