package sign

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
)

// dropTolerated drops the signs of a command of which a script or a makefile says that its failure does not matter. The line
// that says so stands just after what the command has printed.
func (f *finder) dropTolerated() {
	for i, t := range f.Lines {
		if !outlook.Tolerated(t) {
			continue
		}
		f.covered[i] = true
		if i > 0 {
			f.covered[i-1] = true
		}
		f.Signs = slices.DeleteFunc(f.Signs, func(g *Sign) bool { return g.From <= i && g.To >= i-1 })
	}
}
