package curve

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Pattern is a user's own form of progress: a regular expression with named groups.
type Pattern struct {
	re                       *regexp.Regexp
	step, total, epoch, loss int // indexes of the groups; -1 if there is none
}

// longestPattern bounds a pattern, in bytes: it is compiled for every rank's host.
const longestPattern = 4 << 10

// groups are the names that a group of a pattern may have.
var groups = []string{"step", "total", "epoch", "loss"}

// NewPattern compiles a pattern. It needs a group named step or epoch; total and loss are optional.
// The error says what is wrong, and quotes the pattern.
func NewPattern(text string) (*Pattern, error) {
	if len(text) > longestPattern {
		return nil, fmt.Errorf("the progress pattern %.40q... has %d bytes, but may have %d", text, len(text), longestPattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the progress pattern %q is no regular expression: %w", text, err)
	}
	for i, name := range re.SubexpNames() {
		switch {
		case name == "":
		case !slices.Contains(groups, name):
			return nil, fmt.Errorf("the progress pattern %q has a group named %q, but a group may only be named %s", text, name, strings.Join(groups, ", "))
		case re.SubexpIndex(name) != i:
			return nil, fmt.Errorf("the progress pattern %q has two groups named %q", text, name)
		}
	}
	p := &Pattern{re: re, step: re.SubexpIndex("step"), total: re.SubexpIndex("total"), epoch: re.SubexpIndex("epoch"), loss: re.SubexpIndex("loss")}
	if p.step < 0 && p.epoch < 0 {
		return nil, fmt.Errorf(`the progress pattern %q has no group named step or epoch, as in step (?P<step>\d+)`, text)
	}
	return p, nil
}

// Line returns the progress of a line that the pattern matches. A group that has no number counts
// for nothing; without a step and an epoch there is no progress.
func (p *Pattern) Line(line []byte) (job.Progress, bool) {
	line = shown(line)
	at := p.re.FindSubmatchIndex(line)
	if at == nil {
		return job.Progress{}, false
	}
	value := func(group int) (float64, bool) {
		if group < 0 || at[2*group] < 0 {
			return 0, false
		}
		text := strings.ReplaceAll(strings.TrimSpace(string(line[at[2*group]:at[2*group+1]])), ",", "")
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil
	}
	whole := func(group int) (int64, bool) {
		v, ok := value(group)
		return int64(v), ok && counts(v)
	}
	found := job.Progress{Epoch: -1}
	step, hasStep := whole(p.step)
	if epoch, ok := whole(p.epoch); ok {
		found.Epoch = epoch
		if !hasStep {
			step, hasStep, found.ByEpoch = epoch, true, true
		}
	}
	if !hasStep {
		return job.Progress{}, false
	}
	found.Step = step
	found.Total, _ = whole(p.total)
	if loss, ok := value(p.loss); ok {
		found.SetLoss(loss)
	}
	return found, true
}
