package agents

import (
	"errors"
	"sync"
)

// Each calls f for 0 to n-1 at the same time, and returns the errors as one joined error.
func Each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
