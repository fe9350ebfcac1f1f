package judge

import (
	"fmt"
	"testing"
)

func TestExplore(t *testing.T) {
	work, _ := corpus(t)
	for _, r := range work {
		s := r.settled
		a, su := r.first(Setup{Total: r.steps, Settled: &s})
		h := r.hindsight()
		fmt.Printf("%-45s div=%v flat=%v |", r.name, h.diverged, h.flat)
		for _, k := range Kinds {
			if v, ok := a[k]; ok {
				fmt.Printf(" %s@%.2f", k, float64(v.Step)/float64(r.steps))
				if v, ok := su[k]; ok {
					fmt.Printf("!%.2f(r%.4f)", float64(v.Step)/float64(r.steps), h.regret(v.Step))
				}
			}
		}
		fmt.Println()
	}
}
