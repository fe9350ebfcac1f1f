package htmlreport

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

// Mark is an event in a picture, at a time and a step.
type Mark struct {
	Time    time.Time // zero if it is not known
	Attempt int       // 0 if it belongs to no attempt
	Step    int64     // -1 if it is not known
	Lane    Lane
	Text    string
}

// Lane is a row of marks of one kind in the pictures.
type Lane int

// The lanes, from the top.
const (
	LaneCheckpoint Lane = iota
	LaneHealth
	LaneStraggler
	LaneHang
	LaneCurve
	LaneExit
	LaneOrder
	LaneVerdict
	lanes
)

// laneNames has the headings of the lanes.
var laneNames = [lanes]string{
	LaneCheckpoint: "checkpoints", LaneHealth: "health of hosts and GPUs", LaneStraggler: "stragglers", LaneHang: "hangs",
	LaneCurve: "verdicts on the curve", LaneExit: "ranks that failed, hosts that were lost or silent", LaneOrder: "signals and ends by gangrun",
	LaneVerdict: "causes and verdicts",
}

// String returns the heading of the lane.
func (l Lane) String() string { return laneNames[l] }

// marking has the lane and the text of the mark for each kind of event that has a mark. An event has no mark if
// the text is empty.
var marking = map[job.Kind]struct {
	lane Lane
	text func(job.Event) string
}{
	job.KindCheckpoint: {LaneCheckpoint, checkpointText},
	job.KindSave:       {LaneCheckpoint, saveText},
	job.KindInterval:   {LaneCheckpoint, plain},
	job.KindCurve:      {LaneCurve, plain},
	job.KindHealth:     {LaneHealth, onHost},
	job.KindGPU:        {LaneHealth, onHost},
	job.KindStraggler:  {LaneStraggler, plain},
	job.KindHang:       {LaneHang, plain},
	job.KindExit:       {LaneExit, exitText},
	job.KindSuspect:    {LaneExit, plain},
	job.KindHeard:      {LaneExit, plain},
	job.KindStop:       {LaneOrder, plain},
	job.KindSignal:     {LaneOrder, plain},
	job.KindAttached:   {LaneOrder, attachedText},
	job.KindCause:      {LaneVerdict, causeText},
	job.KindVerdict:    {LaneVerdict, verdictText},
}

// unmarked has the kinds of events that have no mark, because other parts of the page show them, or because
// there are too many.
var unmarked = []job.Kind{
	job.KindCreated, job.KindState, job.KindFinding, job.KindFingerprint, job.KindTrial, job.KindPlaced, job.KindAttempt, job.KindHost, job.KindStarted,
	job.KindStdin, job.KindProgress, job.KindUnread, job.KindActivity, job.KindOutcome, job.KindNote, job.KindEnded, job.KindAllStarted, job.KindWireup,
	job.KindStacks, job.KindPulse,
}

// markOf returns the mark of an event, if it has one.
func markOf(e job.Event) (Mark, bool) {
	how, ok := marking[e.Kind]
	if !ok {
		return Mark{}, false
	}
	m := Mark{Time: e.Time, Attempt: e.Attempt, Step: -1, Lane: how.lane, Text: how.text(e)}
	if c := e.Checkpoint; c != nil {
		m.Time, m.Step = c.Time, c.Step
	}
	if s := e.Save; s != nil {
		m.Step = s.Step
	}
	if v := e.Curve; v != nil && !v.ByEpoch {
		m.Step = v.Step
	}
	return m, m.Text != ""
}

func plain(e job.Event) string { return e.Text }

func onHost(e job.Event) string {
	if e.Host == "" {
		return e.Text
	}
	return e.Host + ": " + e.Text
}

func checkpointText(e job.Event) string {
	if e.Checkpoint == nil {
		return ""
	}
	return "checkpoint " + e.Checkpoint.Path
}

// saveText returns the text about a checkpoint that is complete or has a problem.
func saveText(e job.Event) string {
	if e.Save == nil || e.Save.State == job.SaveWriting {
		return ""
	}
	return saves.Text(*e.Save)
}

func exitText(e job.Event) string {
	if e.Exit == nil || e.Exit.Good() || e.Exit.Stopped {
		return ""
	}
	return e.Exit.String()
}

func attachedText(e job.Event) string {
	if e.Controller == nil {
		return ""
	}
	return fmt.Sprintf("process %d on %s has taken over the run", e.Controller.PID, e.Controller.Host)
}

func causeText(e job.Event) string {
	if e.Cause == nil {
		return ""
	}
	return fmt.Sprintf("cause: %s: %s", e.Cause.Category, e.Cause.Text)
}

func verdictText(e job.Event) string {
	if e.Verdict == nil {
		return ""
	}
	return fmt.Sprintf("verdict: %s: %s", e.Verdict.Action, e.Verdict.Reason)
}

// mostMarks is the maximum number of marks of a lane that the page shows. Half of them are the first marks, and
// half the last.
const mostMarks = 60

// marked has the marks of a lane.
type marked struct {
	first, last []Mark
	left        int // number of marks that are left out
}

func (m *marked) add(mark Mark) {
	if len(m.first) < mostMarks/2 {
		m.first = append(m.first, mark)
		return
	}
	m.last = append(m.last, mark)
	if len(m.last) > mostMarks/2 {
		m.last = slices.Delete(m.last, 0, 1)
		m.left++
	}
}

func (m marked) all() []Mark { return slices.Concat(m.first, m.last) }
