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

// The codes that Watch gives its findings.
const (
	CheckHung  = "gpu-driver-hung"
	CheckWatch = "gpu-watch" // why the GPUs cannot be watched
)

// The defaults of Watching.
const (
	// Silence is how long gangrun-nvml may print nothing before the driver counts as hung.
	// It prints a line in each nvml.Beat in which the driver answers.
	Silence = 10 * time.Second
	// Restarts is how often gangrun-nvml is started again after it has ended or hung.
	Restarts = 3
	// Pause is the wait before the first restart. Each further wait is twice as long.
	Pause = time.Second
)

// maxWarnings is how many different warnings of gangrun-nvml Watch passes on.
const maxWarnings = 16

// Watching says what Watch watches, and how. Zero values mean the constants of this
// package.
type Watching struct {
	// NVML and Path are those of Options.
	NVML, Path string
	// GPUs are the UUIDs of the GPUs to watch: of whole GPUs, not of MIG instances.
	GPUs []string
	// Start is how long gangrun-nvml may print nothing after its start; 0 means Limit.
	Start    time.Duration
	Silence  time.Duration
	Restarts int // below 0 is never
	Pause    time.Duration
}

// Watch calls report with the XID and ECC events of GPUs of this host, and with the
// processes that compute on them, until ctx is done. It calls say with findings about what
// it cannot watch. It makes only one of these calls at a time.
//
// Watch runs gangrun-nvml, and ends it before it returns, unless it cannot be killed. Watch
// returns early, after a finding, if gangrun-nvml has ended or hung too often. It returns
// immediately, without a finding, if there is no gangrun-nvml or no GPU.
func Watch(ctx context.Context, o Watching, report func(nvml.Event), say func(job.Finding)) {
	path := cmp.Or(o.NVML, lookNVML(cmp.Or(o.Path, os.Getenv("PATH"))))
	if path == "" || len(o.GPUs) == 0 {
		return
	}
	o.Start, o.Silence, o.Pause = cmp.Or(o.Start, Limit), cmp.Or(o.Silence, Silence), cmp.Or(o.Pause, Pause)
	o.Restarts = cmp.Or(o.Restarts, Restarts)
	w := &watch{Watching: o, path: path, report: report, say: say, kill: kill}
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
		end := w.child(ctx)
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

// event takes an event of a child.
func (w *watch) event(e nvml.Event) {
	w.begun = true
	// A GPU that is lost may have no UUID any more.
	if e.Kind == nvml.EventAlive || e.UUID != "" && !slices.Contains(w.GPUs, e.UUID) {
		return
	}
	// The event was sent on this machine: if it seems older than a minute, the clock was set.
	if age := time.Since(e.Time); age < 0 || age > time.Minute {
		e.Time = time.Now()
	}
	w.report(e)
}

// warning takes what a child cannot watch.
func (w *watch) warning(text string) {
	if len(w.warned) < maxWarnings && !slices.Contains(w.warned, text) {
		w.warned = append(w.warned, text)
		w.finding(CheckWatch, job.SeverityNote, "gangrun does not see its XID and ECC errors; dmesg has them", "%s", text)
	}
}
