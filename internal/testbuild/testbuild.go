// Package testbuild builds gangrun for tests, with the same settings as "make build". So Go
// compiles each package only once for both.
package testbuild

import (
	"fmt"
	"os"
	"os/exec"
)

// tags are the build tags of the Makefile.
const tags = "urfave_cli_no_docs,grpcnotrace"

// Gangrun builds gangrun at path as users get it: static, and without the race detector.
func Gangrun(path string) error {
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w", "-o", path, "github.com/gangrun/gangrun/cmd/gangrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return nil
}
