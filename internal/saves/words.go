package saves

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// Text says in words what r reports.
func Text(r job.SaveReport) string {
	name := filepath.Base(r.Path)
	switch r.State {
	case job.SaveWriting:
		return fmt.Sprintf("the checkpoint %s is being written: %s in %s so far", name, text.Bytes(r.Bytes), about(time.Duration(r.Write)))
	case job.SaveBroken:
		return fmt.Sprintf("the checkpoint %s is broken: %s", name, r.Why)
	case job.SaveShrinking:
		return fmt.Sprintf("the checkpoint %s is complete, but small: %s", name, r.Why)
	case job.SaveOverdue:
		return fmt.Sprintf("there is no new checkpoint for much longer than usual: the job saves every %s, and began %s, the last one, at %s", about(time.Duration(r.Usual)), name, r.Begun.Format("15:04:05"))
	case job.SaveDisk:
		return fmt.Sprintf("the file system of the checkpoints will be full before the next two, unless old ones are removed: the last one has %s, and %s is free", text.Bytes(r.Bytes), text.Bytes(r.Free))
	}
	line := fmt.Sprintf("the checkpoint %s is complete: %s, written in %s", name, text.Bytes(r.Bytes), about(time.Duration(r.Write)))
	if r.Stall != nil {
		line += fmt.Sprintf(", the training stood still for %s", about(time.Duration(*r.Stall)))
	}
	if r.Why != "" {
		line += " (" + r.Why + ")"
	}
	return line
}

// Hint says what to do about the problem that r reports. It returns "" if there is nothing to do.
func Hint(r job.SaveReport) string {
	switch r.State {
	case job.SaveBroken:
		return "a retry resumes from the one before it; write checkpoints under a temporary name, and rename them when they are complete"
	case job.SaveShrinking:
		return "look whether a part of the model or the optimizer's state is missing"
	case job.SaveOverdue:
		return "look whether the job still saves: its output, and the space and the speed of the file system"
	case job.SaveDisk:
		return "remove old checkpoints (gangrun checkpoints DIRECTORY --prune keep=3), save less often, or use another file system for --checkpoint-dir"
	}
	return ""
}
