package cleanup

import (
	"errors"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
)

// PrintHosts writes what was removed on hosts, as text or JSON. It returns an error if writing fails, or if
// something may be left on some hosts. The error then names these hosts.
func PrintHosts(w io.Writer, all []job.Cleaned, asJSON bool) error {
	var err error
	if asJSON {
		err = view.JSON(w, all)
	}
	for _, c := range all {
		if !asJSON {
			err = errors.Join(err, printHost(w, c))
		}
		if c.Problem != "" {
			err = errors.Join(err, &failure.Error{Code: failure.CodeMayPass, Hint: c.Hint,
				Err: fmt.Errorf("what dead runs have left on %s may be there still: %s", c.Host, c.Problem)})
		}
		var left []leftover.Process
		for _, p := range c.Left {
			left = append(left, leftover.Process{PID: p.PID, Name: p.Name, State: p.State})
		}
		if problem := StillRunning(left); problem != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", c.Host, problem))
		}
	}
	return err
}

// printHost writes what was removed on a host, one line for each thing.
func printHost(w io.Writer, c job.Cleaned) error {
	var err error
	say := func(format string, args ...any) {
		_, printErr := fmt.Fprintf(w, "%s: %s\n", c.Host, text.Printable(fmt.Sprintf(format, args...)))
		err = errors.Join(err, printErr)
	}
	for _, p := range c.Processes {
		say("ended process %d (%s), %s", p.PID, p.Name, leftBy(leftover.Process{Gang: p.Gang}))
	}
	for _, container := range c.Containers {
		say("removed the container %s of %s", container.ID, container.Gang)
	}
	if c.Leases > 0 {
		say("removed %s of containerd, and what containerd kept for them", text.Count(c.Leases, "lease"))
	}
	if c.Dirs > 0 {
		say("removed %d of gangrun's directories for containers", c.Dirs)
	}
	for _, i := range c.Images {
		say("removed the image %s (%.1f MB), which was last used on %s", i.Name, float64(i.Bytes)/1e6, i.Used.Local().Format("2006-01-02 15:04"))
	}
	if c.Nothing() && c.Problem == "" {
		say("nothing was left")
	}
	return err
}
