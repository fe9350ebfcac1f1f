package metrics

import (
	"strings"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/curve/judge"
)

// output reads metrics from the lines that a rank has printed.
type output struct {
	reader  curve.Reader
	counter curve.Counter
	at      int64 // the last step in the output; -1 before the first
	byEpoch bool
	total   int64
	// lossEval is true if the output is of a benchmark in lossBenchmarks.
	lossEval bool
}

// lossBenchmarks are the benchmarks of MLPerf Training whose key eval_accuracy has a loss. Their quality
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
		if whole.Total > 0 && !whole.Restarts && whole.Total >= o.at {
			o.total = whole.Total
		}
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
		m, known := MeaningOf(v.Name)
		if known && !(m.Signal == judge.Train && found["loss"]) && (ok || m.Signal == judge.Validation) && !strings.HasPrefix(v.Name, "best") {
			add(v.Name, v.Value)
		}
	}
	return nil
}
