package slurmjob

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Requeue ends a running job and queues it again. The job then does not get the nodes in excluded. Of a job array, only this
// task is queued again: by its ID, Slurm would requeue the whole array if the task has the ID of the array.
// Slurm changes the nodes of a job only while the job is queued. There is time for that: Slurm
// starts a requeued job only after the lifetime of Slurm's job credentials, which is two minutes by
// default.
func Requeue(ctx context.Context, j Job, excluded []string) error {
	if len(excluded) == 0 {
		_, err := scontrol(ctx, "requeue", j.Task)
		return err
	}
	list := strings.Join(excluded, ",")
	if j.Excluded != "" {
		list = j.Excluded + "," + list
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	excluding, stop := exclude(ctx, j.Task, list)
	defer stop()
	select {
	case <-excluding:
	case <-time.After(time.Second): // a command that does not start is no reason to lose the job
	}
	if _, err := scontrol(ctx, "requeue", j.Task); err != nil {
		if now, failed := Show(ctx, j.ID); failed == nil && now.State == "RUNNING" {
			return err
		}
	}
	for {
		_, err := scontrol(ctx, "update", "JobId="+j.Task, "ExcNodeList="+list)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("job %s is queued again, but may get %s: %w", j.ID, list, err)
		}
	}
}

// exclusions is how often one scontrol asks for an exclusion: for about half a second.
const exclusions = 300

// exclude asks Slurm again and again to exclude nodes from a job. It begins before the job is
// queued again. Slurm refuses the exclusion until the job is queued, and kills all processes of the
// job soon after that. If a batch script has started gangrun without exec, there is time for one
// request to Slurm in between, but not for the start of a command. The channel is closed when Slurm
// has answered once. The command ignores the SIGTERM that Slurm sends first.
func exclude(ctx context.Context, id, list string) (answered <-chan struct{}, stop func()) {
	first := &firstWrite{written: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap "" TERM; exec scontrol`)
	cmd.Env = os.Environ()
	cmd.Stdin = strings.NewReader(strings.Repeat("update JobId="+id+" ExcNodeList="+list+"\n", exclusions))
	cmd.Stderr = first
	cmd.WaitDelay = time.Second
	over := make(chan struct{})
	go func() { defer close(over); _ = cmd.Run() }() // Requeue asks once more, and sees its error
	return first.written, func() { cancel(); <-over }
}

// firstWrite closes a channel when something is written to it.
type firstWrite struct {
	written chan struct{}
	once    sync.Once
}

// Write drops what is written.
func (w *firstWrite) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.once.Do(func() { close(w.written) })
	}
	return len(p), nil
}
