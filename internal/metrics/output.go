package metrics

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// output reads metrics from the lines that a rank has printed.
type output struct {
	reader  curve.Reader
	counter curve.Counter
	metric  string // name of a metric that is read even if its name has no known meaning
	at      int64  // the last step in the output; -1 before the first
	byEpoch bool
	total   int64
	plan    plan
	// lossEval is true if the output is of a benchmark in lossBenchmarks.
	lossEval bool
}

// lossBenchmarks has the benchmarks of MLPerf Training in which the key eval_accuracy has a loss. Their quality
// targets are upper limits (rules of MLPerf Training, "Benchmarks").
var lossBenchmarks = words("gpt3 llama2_70b_lora llama31_405b llama31_8b flux1")

func (o *output) line(line []byte, emit func(Point)) error {
	if name, ok := curve.Benchmark(line); ok {
		o.lossEval = lossBenchmarks[name]
		return nil
	}
	p, ok := o.reader.Line(line)
	if ok {
		whole := o.counter.Add(p)
		o.at, o.byEpoch = whole.Count, whole.ByEpoch
		var epochs int64
		if p.Epoch >= 0 && o.plan.epochs == 0 {
			epochs = curve.Epochs(line)
		}
		o.total = o.plan.add(p, whole, epochs)
	}
	found := map[string]bool{}
	add := func(name string, v float64) {
		if !found[name] && o.at >= 0 {
			found[name] = true
			emit(Point{Series: name, Step: o.at, Value: v, ByEpoch: o.byEpoch})
		}
	}
	if ok {
		if p.HasLoss() {
			add("loss", p.LossValue())
		}
	}
	for _, v := range curve.Values(line) {
		if o.lossEval && v.Name == "eval_accuracy" {
			v.Name = "eval_loss"
		}
		if o.wants(v.Name) {
			add(o.metric, v.Value)
			continue
		}
		if strings.HasPrefix(v.Name, "best") {
			continue
		}
		m, known := MeaningOf(v.Name)
		part := m.Signal == judge.Train && found["loss"] // it is the loss that was added before, or a part of it
		if known && !part && (ok || m.Signal == judge.Validation) || ok && (m.Training || Indirect(v.Name)) {
			add(v.Name, v.Value)
		}
	}
	return nil
}

// wants reports whether name means o.metric. In the output, further words may come before the name of the
// metric.
func (o *output) wants(name string) bool {
	want, of := tokens(o.metric), tokens(name)
	return len(want) > 0 && len(of) >= len(want) && slices.Equal(of[len(of)-len(want):], want)
}

// plan finds the number of planned steps of a run. It uses the number in the count by which steps are counted.
// If the steps begin again with each epoch, it computes the steps of all epochs.
type plan struct {
	epochs int64 // the number of planned epochs; 0 if not known
	first  int64 // the first epoch, plus one; 0 before it
	steps  int64 // the largest number of planned steps of a count
	total  int64
}

// add adds a report. p is the report as it is printed. whole has the count of the whole run. epochs is the
// number of epochs in its line. add returns the number of planned steps, or 0 if it is not known.
func (n *plan) add(p, whole job.Progress, epochs int64) int64 {
	if p.ByEpoch {
		n.epochs = max(n.epochs, p.Total)
		if n.steps == 0 && !whole.Restarts {
			n.total = n.epochs
		}
		return n.total
	}
	n.epochs = max(n.epochs, epochs)
	if n.first == 0 && whole.Epoch >= 0 {
		n.first = whole.Epoch + 1
	}
	if p.Total == 0 || p.Total < n.steps {
		return n.total
	}
	n.steps = p.Total
	switch {
	case whole.Restarts:
		n.total = n.epochs * p.Total
	case n.epochs > 1 && whole.Epoch+1 == n.first: // the second epoch will show whether the steps begin again
		n.total = 0
	case p.Total >= whole.Count:
		n.total = p.Total
	}
	return n.total
}
