package probe

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// Values of job.Finding.Check in the findings of Watch.
const (
	CheckHung  = "gpu-driver-hung"
	CheckWatch = "gpu-watch" // the GPUs cannot be watched
)

// The defaults of the fields of Watching.
const (
	// Silence is how long gangrun-nvml may print nothing before Watch assumes that the driver hangs. While the
	// driver answers, gangrun-nvml prints a line after each nvml.Beat.
	Silence = 10 * time.Second
	// Restarts is how often Watch starts gangrun-nvml again after it has ended or hung.
	Restarts = 3
	// Pause is the wait before the first restart. Each further wait is twice as long.
	Pause = time.Second
)

// maxWarnings is the maximum number of different warnings of gangrun-nvml that Watch passes on.
const maxWarnings = 16

// Watching has the options of Watch. If Start is zero, Watch uses the constant Limit. If Silence, Restarts or
// Pause is zero, Watch uses the constant of that name.
type Watching struct {
	// NVML and Path are as in Options.
	NVML, Path string
	// If Launch is not nil, it runs gangrun-nvml on another host. Watch then watches the GPUs of that host, and
	// does not use NVML and Path.
	Launch func(ctx context.Context, args ...string) (Remote, error)
	// GPUs are the UUIDs of the GPUs to watch. They are UUIDs of whole GPUs, not of MIG
	// instances.
	GPUs []string
	// Start is how long gangrun-nvml may print nothing after its start.
	Start    time.Duration
	Silence  time.Duration
	Restarts int // negative means never
	Pause    time.Duration
}

// Until ctx is done, Watch calls report with events about GPUs of this host or of another host: their XID and
// ECC events, samples of their load and state, and the processes that compute on them. It calls notify with
// findings about what it cannot watch. Calls of report and notify do not overlap.
//
// Watch runs gangrun-nvml. When Watch returns, gangrun-nvml has ended, unless it could not be killed. If
// gangrun-nvml has ended or hung too often, Watch calls notify with a finding and returns before ctx is done.
// If there is no gangrun-nvml or no GPU to watch, Watch returns immediately, without a finding.
func Watch(ctx context.Context, o Watching, report func(nvml.Event), notify func(job.Finding)) {
	path := ""
	if o.Launch == nil {
		path = cmp.Or(o.NVML, lookNVML(cmp.Or(o.Path, os.Getenv("PATH"))))
	}
	if path == "" && o.Launch == nil || len(o.GPUs) == 0 {
		return
	}
	o.Start, o.Silence, o.Pause = cmp.Or(o.Start, Limit), cmp.Or(o.Silence, Silence), cmp.Or(o.Pause, Pause)
	o.Restarts = cmp.Or(o.Restarts, Restarts)
	w := &watch{Watching: o, path: path, report: report, say: notify, kill: kill}
	w.run(ctx)
}

// watch is one call of Watch.
type watch struct {
	Watching
	path   string
	report func(nvml.Event)
	say    func(job.Finding)
	kill   func(pid int)

	warned []string
	hung   bool // a finding has reported it
	begun  bool // a child has reported that it watches
}

func (w *watch) run(ctx context.Context) {
	pause := w.Pause
	for starts := 1; ctx.Err() == nil; starts++ {
		run := w.child
		if w.Launch != nil {
			run = w.remote
		}
		end := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if end.hung && (!w.hung || end.stuck) {
			w.hung = true
			w.finding(CheckHung, job.SeverityWarning, "look for NVRM and Xid in dmesg, and run nvidia-smi; if that hangs too, as a rule only a reboot of the host helps",
				"the GPU driver hangs: %s", end.why)
		}
		if end.stuck || starts > w.Restarts {
			no := "not watched"
			if w.begun {
				no = "no longer watched"
			}
			w.finding(CheckWatch, job.SeverityWarning, `run "gangrun-nvml events" and look`,
				"GPUs are %s for XID and ECC errors: gangrun-nvml was started %d times, and %s", no, starts, end.why)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause *= 2
	}
}

func (w *watch) finding(check string, severity job.Severity, hint, format string, args ...any) {
	w.say(job.Finding{Check: check, Severity: severity, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// event handles an event of a child.
func (w *watch) event(e nvml.Event) {
	w.begun = true
	// A GPU that is lost may have no UUID any more.
	if e.Kind == nvml.EventAlive || e.UUID != "" && !slices.Contains(w.GPUs, e.UUID) {
		return
	}
	// The event has just been sent: if it seems older than a minute, the clock was set, or is wrong.
	if age := time.Since(e.Time); age < 0 || age > time.Minute {
		e.Time = time.Now()
	}
	w.report(e)
}

// warning handles a warning about what a child cannot watch.
func (w *watch) warning(text string) {
	if len(w.warned) < maxWarnings && !slices.Contains(w.warned, text) {
		w.warned = append(w.warned, text)
		w.finding(CheckWatch, job.SeverityNote, "gangrun does not see its XID and ECC errors; dmesg has them", "%s", text)
	}
}
