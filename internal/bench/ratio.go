package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// ratio is the ratio of the medians of two contenders. low and high are the limits of its 90 % bootstrap interval, for
// which pairs of runs are drawn with replacement.
type ratio struct{ of, low, high float64 }

// ratioOf returns the ratio of the median of a to that of b. The runs a[i] and b[i] must have followed each other.
func ratioOf(a, b sample) ratio {
	const draws = 4000
	random := rand.New(rand.NewPCG(1, 2)) // with a fixed seed, so that the result is the same every time
	drawn := make([]float64, draws)
	x, y := make(sample, len(a)), make(sample, len(b))
	for i := range drawn {
		for j := range x {
			pair := random.IntN(len(a))
			x[j], y[j] = a[pair], b[pair]
		}
		drawn[i] = float64(x.median()) / float64(y.median())
	}
	slices.Sort(drawn)
	return ratio{float64(a.median()) / float64(b.median()), drawn[draws/20], drawn[draws-1-draws/20]}
}

func (r ratio) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", r.of, r.low, r.high) }
