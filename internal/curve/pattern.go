package curve

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Pattern is a form of progress lines that the user has defined: a regular expression with named groups.
type Pattern struct {
	re                       *regexp.Regexp
	step, total, epoch, loss int // indexes of the groups; -1 if there is none
}

// NewPattern compiles a pattern; see job.CompileProgress.
func NewPattern(text string) (*Pattern, error) {
	re, err := job.CompileProgress(text)
	if err != nil {
		return nil, err
	}
	return &Pattern{re: re, step: re.SubexpIndex("step"), total: re.SubexpIndex("total"), epoch: re.SubexpIndex("epoch"), loss: re.SubexpIndex("loss")}, nil
}

// Line returns the progress of a line that matches the pattern. It ignores groups that do not match a number.
// The second result is false if the line does not match, or has neither a step nor an epoch.
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
	if p.loss >= 0 && at[2*p.loss] >= 0 {
		if loss, ok := pointed(line[at[2*p.loss]:at[2*p.loss+1]]); ok {
			found.SetLoss(loss)
		}
	}
	return found, true
}

// pointed reads a number with a decimal point or a decimal comma.
func pointed(text []byte) (float64, bool) {
	text = bytes.TrimSpace(text)
	bare := bytes.TrimPrefix(text, []byte("-"))
	if v, end, ok := decimal(bare, 0); ok && end == len(bare) {
		if len(bare) < len(text) {
			v = -v
		}
		return v, true
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
