package curveview

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/text"
)

const (
	height = 12 // number of rows of a plot
	labels = 14 // number of columns for the labels beside a plot
)

// Print prints the report with a plot, which is width columns wide. If colour is true, each curve has a colour
// of its own.
func (r Report) Print(w io.Writer, width int, colour bool) error {
	var b strings.Builder
	for _, f := range r.Files {
		if f.Problem != "" {
			fmt.Fprintf(&b, "problem %s: %s\n", text.Printable(f.Path), text.Printable(f.Problem))
		}
	}
	curves := []*Curve{r.Metric}
	if r.Train != nil && r.Train != r.Metric {
		curves = append(curves, r.Train)
	}
	for i, c := range curves {
		better := "lower"
		if c.Higher {
			better = "higher"
		}
		label := []string{"metric ", "loss   "}[i]
		fmt.Fprintf(&b, "%s %s of %s, %s is better: %s\n", label, text.Printable(c.Series), text.Printable(c.Path), better, text.Count(c.Values, "value"))
		if c.Best != nil {
			fmt.Fprintf(&b, "        best %.4g at step %d, last %.4g at step %d\n", c.Best.Value, c.Best.Step, c.Last.Value, c.Last.Step)
		}
	}
	if r.Total > 0 {
		fmt.Fprintf(&b, "planned %s\n", text.Count(int(r.Total), "step"))
	}
	for _, c := range curves {
		if drawn := c.Plot(width, height, colour); drawn != "" {
			b.WriteString("\n" + drawn + "\n\n")
		}
	}
	history(&b, r.History)
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "now     %s\n", line(v))
	}
	if len(r.Verdicts) == 0 {
		b.WriteString("now     no verdict: nothing says that the run is in vain\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func history(b *strings.Builder, all []judge.Verdict) {
	for _, v := range all {
		fmt.Fprintf(b, "step %d: %s\n", v.Step, line(v))
	}
}

func line(v judge.Verdict) string {
	out := fmt.Sprintf("%s, confidence %.0f %%: %s", v.Kind, 100*v.Confidence, v.Sentence)
	if v.Saves != nil && *v.Saves > 0 {
		out += fmt.Sprintf("; an end now would save %.3g GPU-hours", *v.Saves)
		if v.Kind == judge.Slower {
			out = strings.Replace(out, "an end now would save", "it will cost", 1)
		}
	}
	return out
}

// Plot draws the curve with labels. The plot is at most width columns wide, and has rows lines for the values.
// Plot returns an empty string if the curve has fewer than two points, or no finite point. Values that are not
// finite are gaps. If the values are positive and the largest is more than a hundred times the smallest, the
// scale is logarithmic.
func (c *Curve) Plot(width, rows int, colour bool) string {
	width = max(20, width-labels)
	if c.Best == nil || len(c.points) < 2 {
		return ""
	}
	first, last := c.points[0].step, c.points[len(c.points)-1].step
	cells, low, high := spread(c.points, first, last, width)
	scale := func(v float64) float64 { return v }
	logarithmic := low > 0 && high > 100*low
	if logarithmic {
		for i, v := range cells {
			cells[i] = math.Log10(v)
		}
		scale = func(v float64) float64 { return math.Pow(10, v) }
	}
	if low == high { // the plot library needs two different limits
		high = low + max(1e-9, math.Abs(low)*1e-3)
	}
	caption := c.Series
	if logarithmic {
		caption += ", logarithmic"
	}
	options := []asciigraph.Option{asciigraph.Height(rows), asciigraph.Width(width), asciigraph.Caption(text.Printable(caption) + ", by step"),
		asciigraph.XAxisRange(float64(first), float64(last)), asciigraph.XAxisTickCount(4),
		asciigraph.XAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%.0f", v) }),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%.4g", scale(v)) })}
	if colour {
		options = append(options, asciigraph.SeriesColors(asciigraph.Blue))
	}
	return asciigraph.Plot(cells, options...)
}

// spread returns the mean of the points in each column of a plot. A column without points has the mean of the
// column before. low and high are the lowest and the highest mean.
func spread(points []point, first, last int64, width int) (cells []float64, low, high float64) {
	sums, counts := make([]float64, width), make([]float64, width)
	broken := make([]bool, width)
	for _, p := range points {
		i := int(float64(p.step-first) / float64(max(1, last-first)) * float64(width-1))
		if !finite(p.value) {
			broken[i] = true
			continue
		}
		sums[i], counts[i] = sums[i]+p.value, counts[i]+1
	}
	low, high = math.Inf(1), math.Inf(-1)
	before := math.NaN()
	for i := range sums {
		switch {
		case counts[i] > 0:
			before = sums[i] / counts[i]
			low, high = min(low, before), max(high, before)
		case broken[i]:
			before = math.NaN()
		}
		sums[i] = before
	}
	return sums, low, high
}
