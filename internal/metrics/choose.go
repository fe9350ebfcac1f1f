package metrics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/text"
)

// Candidate is a series by which gangrun may judge a run.
type Candidate struct {
	Name   string
	Values int
}

// Choice says which series are the signals of a run. By has their indexes in a list of Candidates.
type Choice struct {
	By     map[judge.Signal]int
	Higher bool // higher values of the signal judge.Validation are better
	// Indirect is true if the names of the series are typical of reinforcement learning, GANs or variational
	// models (see judge.Setup).
	Indirect bool
}

// NoMetricError is the error if a run has no metric that gangrun knows, or not the metric that the user has
// named.
type NoMetricError struct {
	Metric string // the metric that the user has named; "" if the user has named none
	Series []string
}

func (e *NoMetricError) Error() string {
	if e.Metric != "" {
		return fmt.Sprintf("there is no metric %q", e.Metric)
	}
	return "no metric was found"
}

// Hint returns what the user can do about the error.
func (e *NoMetricError) Hint() string {
	if len(e.Series) == 0 {
		return "gangrun curve reads the output of trainers, event files of TensorBoard, CSV, JSON lines, W&B offline runs and trainer_state.json"
	}
	return "name one with --metric: " + text.And(e.Series[:min(len(e.Series), 12)])
}

// DirectionError is the error if nothing says whether higher values of a metric are better.
type DirectionError struct{ Metric string }

func (e *DirectionError) Error() string {
	return fmt.Sprintf("the name %q does not say whether higher or lower values are better", e.Metric)
}

// Hint returns what the user can do about the error.
func (e *DirectionError) Hint() string { return "add --higher or --lower" }

// few is the number of values that a series needs. Choose takes a shorter series only if there is no other.
const few = 3

// Choose chooses a series for each signal. It prefers a series with at least three values to a shorter one, then the
// series whose name has the lowest Order (see Meaning), and then the longest. metric is the name of the series by
// which to judge; if it is "", Choose takes the best one. higher says whether higher values of that series are
// better; if it is nil, the name of the series must tell that. The error is a *NoMetricError or a *DirectionError.
func Choose(all []Candidate, metric string, higher *bool) (Choice, error) {
	c := Choice{By: map[judge.Signal]int{}}
	meanings := make([]Meaning, len(all))
	known := make([]bool, len(all))
	var names []string
	for i, s := range all {
		meanings[i], known[i] = MeaningOf(s.Name)
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		c.Indirect = c.Indirect || Indirect(s.Name)
		if !known[i] {
			continue
		}
		of := meanings[i].Signal
		old, has := c.By[of]
		if !has || better(s, all[old], meanings[i].Order-meanings[old].Order) {
			c.By[of] = i
		}
	}
	if metric != "" {
		i := Named(all, metric)
		if i < 0 {
			return c, &NoMetricError{metric, names}
		}
		m := meanings[i]
		if higher == nil && !m.Known {
			return c, &DirectionError{all[i].Name}
		}
		delete(c.By, judge.Validation)
		if m.Signal == judge.Train && known[i] && m.Known && (higher == nil || !*higher) {
			c.By[judge.Train] = i
		} else {
			c.By[judge.Validation] = i
		}
	}
	_, train := c.By[judge.Train]
	i, validation := c.By[judge.Validation]
	if !train && !validation {
		if i = ofTrainingData(all, meanings); i < 0 {
			return c, &NoMetricError{Series: names}
		}
		c.By[judge.Validation], validation = i, true
	}
	if validation {
		c.Higher = meanings[i].Higher
		if higher != nil {
			c.Higher = *higher
		}
	}
	return c, nil
}

// ofTrainingData returns the index of the best-suited metric that was measured on training data and is not the
// loss, or -1 if there is none.
func ofTrainingData(all []Candidate, meanings []Meaning) int {
	best := -1
	for i, m := range meanings {
		if m.Training && (best < 0 || better(all[i], all[best], m.Order-meanings[best].Order)) {
			best = i
		}
	}
	return best
}

// better reports whether a run is better judged by a than by b. rank is how much worse the name of a is.
func better(a, b Candidate, rank int) bool {
	if short, before := a.Values < few, b.Values < few; short != before {
		return before
	}
	return rank < 0 || rank == 0 && a.Values > b.Values
}

// Named returns the index of the longest series that is called name. If there is none, it returns the index of
// the first series whose name ends in "/" and name, and otherwise -1.
func Named(all []Candidate, name string) int {
	found := -1
	for i, s := range all {
		if s.Name == name && (found < 0 || s.Values > all[found].Values) {
			found = i
		}
	}
	if found >= 0 {
		return found
	}
	return slices.IndexFunc(all, func(s Candidate) bool { return strings.HasSuffix(s.Name, "/"+name) })
}
