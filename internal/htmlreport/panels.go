package htmlreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// plotHeight is the height of the plot in a panel. The width is plotWidth units, which are stretched to the
// width of the screen.
const (
	plotHeight = 180
	plotWidth  = 1000
)

// mostLines is the maximum number of attempts in a panel. In a longer run, these are the last ones.
const mostLines = 50

// panel is a picture of a metric by step.
type panel struct {
	Title, Note string
	Lines       []curveLine
	Verticals   []vertical
	Rows        []row
	X, Y        []tick
	Hover       []hover
	Axis        int // position of the axis of steps, from the top
	Height      int
}

// TickY returns the position of the labels of the axis of steps, and XTicks returns the labels.
func (p panel) TickY() int     { return p.Axis + 16 }
func (p panel) XTicks() []tick { return p.X }

// Plot returns the height of the plot.
func (p panel) Plot() int { return plotHeight }

// curveLine is the line of an attempt. Its paths have the units of the plot.
type curveLine struct {
	Class string
	Path  string
	Bad   string // marks the values that are not finite
	Title string
}

// vertical is a line across the plot at the step of a mark.
type vertical struct {
	X     float64 // in percent
	Lane  Lane
	Title string
}

// Number returns the number of the lane, which determines its colour.
func (v vertical) Number() int { return int(v.Lane) }

// hover is an invisible part of the plot. It shows its values as a title.
type hover struct {
	X, W  float64 // in percent
	Title string
}

// panels draws the metrics of all attempts. The marks are below the first panel.
func (r *Recorder) panels(report runreport.Report, all []Curves) (out []panel) {
	all = all[max(0, len(all)-mostLines):]
	marks := r.everyMark()
	for _, of := range []struct {
		title string
		same  bool // only metrics with the same name can be compared
		zero  bool // the scale begins at 0
		curve func(Curves) Curve
	}{
		{"Loss", false, false, func(c Curves) Curve { return c.Loss }},
		{"Validation", true, false, func(c Curves) Curve { return c.Metric }},
		{"Throughput", true, true, func(c Curves) Curve { return c.Throughput }},
	} {
		var given []Curve
		var numbers []int
		for _, c := range slices.Backward(all) { // the newest attempt decides the name
			curve := of.curve(c)
			if len(curve.Points) > 0 && (len(given) == 0 || !of.same || curve.Name == given[0].Name) {
				given, numbers = append(given, curve), append(numbers, c.Attempt)
			}
		}
		slices.Reverse(given)
		slices.Reverse(numbers)
		scale, ok := scaleOf(given)
		if of.zero && ok && !scale.log {
			scale.low = min(0, scale.low)
		}
		if ok && scale.first < scale.last { // a single value is no curve
			p := draw(of.title, scale, given, numbers)
			r.addMarks(&p, scale, marks, len(out) == 0)
			out = append(out, p)
		}
	}
	return out
}

// scale maps steps and values to the plot.
type scale struct {
	first, last float64 // steps
	low, high   float64 // values, or their logarithms
	log         bool
}

func (s scale) x(step float64) float64 {
	return (step - s.first) / (s.last - s.first)
}

// y returns the distance of a value from the top, as a share of the height.
func (s scale) y(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return 1 - (v-s.low)/(s.high-s.low)
}

// scaleOf returns the scale for curves. The scale is logarithmic if all values are positive and the largest is
// more than a hundred times the smallest. ok is false if no value is finite.
func scaleOf(curves []Curve) (s scale, ok bool) {
	s = scale{first: math.Inf(1), last: math.Inf(-1), low: math.Inf(1), high: math.Inf(-1)}
	for _, c := range curves {
		for _, p := range c.Points {
			s.first, s.last = min(s.first, p.X), max(s.last, p.X)
			if finite(p.Y) {
				s.low, s.high = min(s.low, p.Y), max(s.high, p.Y)
			}
		}
	}
	if s.low > s.high {
		return s, false
	}
	if s.log = s.low > 0 && s.high > 100*s.low; s.log {
		s.low, s.high = math.Log10(s.low), math.Log10(s.high)
	}
	if spread := s.high - s.low; spread <= 1e-9*math.Abs(s.high) || math.IsInf(spread, 0) {
		more := max(1e-9, math.Abs(s.high)*0.05)
		s.low, s.high = s.low-more, s.high+more
	} else {
		s.low, s.high = s.low-0.04*spread, s.high+0.08*spread
	}
	return s, !math.IsInf(s.high-s.low, 0)
}

// draw draws curves. numbers has the numbers of their attempts.
func draw(title string, s scale, curves []Curve, numbers []int) panel {
	newest := curves[len(curves)-1]
	p := panel{Title: title}
	var note []string
	if newest.Name != "" {
		note = append(note, text.Clip(newest.Name, 60))
	}
	if s.log {
		note = append(note, "logarithmic")
	}
	parts := max(12, 500/len(curves))
	for i, c := range curves {
		points := thin(c.Points, parts)
		l := curveLine{Class: "old", Title: fmt.Sprintf("attempt %d", numbers[i])}
		if i == len(curves)-1 {
			l.Class = "new"
		}
		l.Path, l.Bad = path(points, s)
		p.Lines = append(p.Lines, l)
		if i == len(curves)-1 {
			note = append(note, ends(c)...)
		}
	}
	if len(curves) > 1 {
		note = append(note, fmt.Sprintf("thick: attempt %d; thin: earlier ones", numbers[len(numbers)-1]))
	}
	p.Note = strings.Join(note, "; ")
	p.Hover = hovers(curves, numbers, s)
	p.Axis = plotHeight + 6
	p.Height = p.Axis + axisHeight
	p.X, p.Y = stepTicks(s), valueTicks(s)
	return p
}

// ends describes the last and the best value of a curve.
func ends(c Curve) []string {
	var last, best *Point
	for i := range c.Points {
		p := &c.Points[i]
		if !finite(p.Y) {
			continue
		}
		last = p
		if best == nil || c.Higher && p.Y > best.Y || !c.Higher && p.Y < best.Y {
			best = p
		}
	}
	if last == nil {
		return []string{"no value is finite"}
	}
	return []string{fmt.Sprintf("last %s at step %.0f", number(last.Y), last.X), fmt.Sprintf("best %s at step %.0f", number(best.Y), best.X)}
}

// path returns the line through points. A value that is not finite interrupts the line, and has a mark at the
// top.
func path(points []Point, s scale) (line, bad string) {
	var b, gaps strings.Builder
	begun := false
	for i, p := range points {
		x := strconv.FormatFloat(math.Round(s.x(p.X)*plotWidth*10)/10, 'f', -1, 64)
		if !finite(p.Y) {
			fmt.Fprintf(&gaps, "M%s 0v14", x)
			begun = false
			continue
		}
		y := strconv.FormatFloat(math.Round(s.y(p.Y)*plotHeight*10)/10, 'f', -1, 64)
		switch {
		case begun:
			b.WriteString("L" + x + " " + y)
		default:
			b.WriteString("M" + x + " " + y)
			if i+1 == len(points) || !finite(points[i+1].Y) {
				b.WriteString("h0") // a single point
			}
		}
		begun = true
	}
	return b.String(), gaps.String()
}

// columns is the number of parts of a plot that show their values when the pointer is on them.
const columns = 100

func hovers(curves []Curve, numbers []int, s scale) (out []hover) {
	texts := make([][]string, columns)
	for i, c := range curves {
		seen := -1
		for _, p := range c.Points {
			at := min(columns-1, int(s.x(p.X)*columns))
			if at == seen {
				continue
			}
			seen = at
			if len(texts[at]) < 4 {
				texts[at] = append(texts[at], fmt.Sprintf("attempt %d, step %.0f: %s", numbers[i], p.X, number(p.Y)))
			}
		}
	}
	for i, lines := range texts {
		if len(lines) > 0 {
			out = append(out, hover{X: percent(float64(i) / columns), W: 100.0 / columns, Title: strings.Join(lines, "\n")})
		}
	}
	return out
}

// addMarks draws lines at the steps of marks. If rows is true, it also draws the marks themselves.
func (r *Recorder) addMarks(p *panel, s scale, marks []Mark, rows bool) {
	place := func(m Mark) (float64, bool) {
		step := float64(m.Step)
		return percent(s.x(step)), m.Step >= 0 && step >= s.first && step <= s.last
	}
	all := r.rows(p.Axis+axisHeight, marks, place)
	for _, row := range all {
		for _, m := range row.Marks {
			p.Verticals = append(p.Verticals, vertical{m.X, row.Lane, m.Title})
		}
	}
	if rows {
		p.Rows = all
		p.Height += laneHeight * len(all)
	}
}

// stepTicks returns the labels of the axis of steps.
func stepTicks(s scale) (out []tick) {
	every := max(1, round(s.last-s.first, 5))
	for v := math.Ceil(s.first/every) * every; v <= s.last; v += every {
		out = append(out, tick{At: percent(s.x(v)), Label: number(v)})
	}
	if len(out) > 0 {
		out[len(out)-1].Label = "step " + out[len(out)-1].Label
	}
	return anchored(out)
}

// round returns a round number that fits into width at most parts times.
func round(width float64, parts float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(width/parts)))
	for _, step := range []float64{1, 2, 5, 10} {
		if width/(step*power) <= parts {
			return step * power
		}
	}
	return 10 * power
}

// valueTicks returns the labels of the axis of values, with their distances from the top in pixels.
func valueTicks(s scale) (out []tick) {
	add := func(v, shown float64) {
		out = append(out, tick{At: math.Round((1 - (v-s.low)/(s.high-s.low)) * plotHeight), Label: number(shown)})
	}
	if s.log && s.high-s.low >= 1.5 {
		every := math.Ceil((s.high - s.low) / 4)
		for v := math.Ceil(s.low); v <= s.high; v += every {
			add(v, math.Pow(10, v))
		}
		return out
	}
	every := round(s.high-s.low, 4)
	for v := math.Ceil(s.low/every) * every; v <= s.high; v += every {
		if s.log {
			add(v, math.Pow(10, v))
		} else {
			add(v, math.Round(v/every)*every+0) // avoid -0
		}
	}
	return out
}
