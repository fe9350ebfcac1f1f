package htmlreport

import (
	"math"

	"github.com/gangrun/gangrun/internal/job"
)

// Point is a value of a curve.
type Point struct{ X, Y float64 }

// maxPoints is the maximum number of points of a series. If there are more, the series is divided into buckets
// parts. Each part keeps its first and last point, its lowest and highest one, and the first that is not
// finite.
const (
	maxPoints = 1 << 14
	buckets   = 1 << 10
)

// series has points in the order of their X, in bounded memory.
type series struct{ points []Point }

// add appends a point. It removes the points at the same X and after it, because the job has gone back to an
// earlier step.
func (s *series) add(x, y float64) {
	i := len(s.points)
	for i > 0 && s.points[i-1].X >= x {
		i--
	}
	s.points = append(s.points[:i], Point{x, y})
	if len(s.points) >= maxPoints {
		s.points = thin(s.points, buckets)
	}
}

// thin divides points into parts of the same width. Of each part, it returns the first and the last point, the
// lowest and the highest point, and the first point that is not finite. A line through these points looks like
// a line through all points if a part is not wider than a pixel (the M4 aggregation of Jugel and others, VLDB
// 2014).
func thin(points []Point, parts int) []Point {
	if len(points) <= 5*parts {
		return points
	}
	first, width := points[0].X, points[len(points)-1].X-points[0].X
	part := func(p Point) int { return min(parts-1, int((p.X-first)/width*float64(parts))) }
	var out []Point
	for from := 0; from < len(points); {
		to := from + 1
		for to < len(points) && part(points[to]) == part(points[from]) {
			to++
		}
		out = append(out, extremes(points[from:to])...)
		from = to
	}
	return out
}

// extremes returns the first and the last of some points, the lowest and the highest, and the first that is not
// finite. It does not change their order.
func extremes(points []Point) (out []Point) {
	low, high, bad := -1, -1, -1
	for i, p := range points {
		switch {
		case !finite(p.Y):
			if bad < 0 {
				bad = i
			}
		case low < 0:
			low, high = i, i
		case p.Y < points[low].Y:
			low = i
		case p.Y > points[high].Y:
			high = i
		}
	}
	for i, p := range points {
		if i == 0 || i == len(points)-1 || i == low || i == high || i == bad {
			out = append(out, p)
		}
	}
	return out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// lossOf returns the loss in a progress report that has one.
func lossOf(p job.Progress) float64 {
	switch {
	case p.Loss != nil:
		return *p.Loss
	case p.LossIs == job.LossInfinite:
		return math.Inf(1)
	case p.LossIs == job.LossNegInfinite:
		return math.Inf(-1)
	}
	return math.NaN()
}

// rates returns the steps per second, by step. points has pairs of seconds and steps. rates combines points
// that are close to each other, because gangrun reads progress about once a second, so that short times say
// little.
func rates(points []Point) (out []Point) {
	if len(points) < 2 {
		return nil
	}
	least := max(1, (points[len(points)-1].X-points[0].X)/200)
	from := points[0]
	for _, p := range points[1:] {
		if p.X-from.X >= least && p.Y > from.Y {
			out = append(out, Point{p.Y, (p.Y - from.Y) / (p.X - from.X)})
			from = p
		}
	}
	return out
}
