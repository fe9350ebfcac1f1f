package sign

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
)

// dropTolerated removes the signs of a command if a script or a makefile says that the command's failure does not
// matter. The script says so on the line after the output of the command.
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
