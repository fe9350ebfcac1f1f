package supervisor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// everyEnv is the variable that tells ranks how often they should save, in seconds.
const everyEnv = "GANGRUN_CHECKPOINT_EVERY_S"

// adviseAfter has the numbers of good checkpoints of an attempt after which gangrun computes how often the job
// should save. With each of them, gangrun knows the cost of a checkpoint better.
var adviseAfter = map[int]bool{3: true, 10: true, 30: true, 100: true, 300: true, 1000: true}

// learnPast reads the attempts of earlier runs, if the job writes checkpoints. It does so only once.
func (l *loop) learnPast(ctx context.Context) {
	if l.info.Past == nil || l.spec.CheckpointDir == "" || l.pace.read {
		return
	}
	past, err := l.info.Past(ctx)
	if err != nil {
		l.note("how often the job should save is computed without the history: %v", err)
	}
	l.pace.read, l.pace.past = true, past
}

// pace has what gangrun knows of the checkpoints and failures of earlier attempts.
type pace struct {
	read bool
	past []saves.Span
}

// failures returns how often a gang on these hosts fails.
func (l *loop) failures(hosts []string) job.SaveInterval {
	if l.spec.MTBF > 0 {
		return job.SaveInterval{Failures: l.spec.MTBF, Source: job.FailuresGiven}
	}
	past := append(l.folder.Report().Spans(), l.pace.past...)
	return saves.Rate(past, runreport.JobName(l.spec.Name, l.spec.Command), hosts)
}

// hints returns the variable that tells the ranks how often to save. It returns nothing if no earlier attempt
// of the job shows the cost of a checkpoint.
func (l *loop) hints(p job.Placement) []string {
	if l.spec.CheckpointDir == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.folder.Report().Spans()
	past := make([]saves.Span, 0, len(now)+len(l.pace.past))
	for i := range now { // the newest first
		past = append(past, now[len(now)-1-i])
	}
	write, stall, ok := saves.Costs(append(past, l.pace.past...), runreport.JobName(l.spec.Name, l.spec.Command))
	if !ok {
		return nil
	}
	advice, ok := saves.Advise(0, write, stall, l.failures(runreport.Hosts(p.Ranks)))
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("%s=%d", everyEnv, int(math.Round(time.Duration(advice.Best).Seconds())))}
}

// advise computes how often the job should save, when enough checkpoints are known.
func (l *loop) advise(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.folder.Report().Last()
	if a == nil || a.Number != number || !adviseAfter[a.Saves.Good] || a.Saves.Every == 0 {
		return
	}
	var stall *time.Duration
	if a.Saves.Stall != nil {
		d := time.Duration(*a.Saves.Stall)
		stall = &d
	}
	if advice, ok := saves.Advise(time.Duration(a.Saves.Every), time.Duration(a.Saves.Write), stall, l.failures(runreport.Hosts(a.Placement))); ok {
		l.emitLocked(job.Event{Kind: job.KindInterval, Attempt: number, Interval: &advice, Text: saves.Words(advice)})
	}
}
