package stacks

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// onlyTools runs helper programs as on a host that has only some tools. If a tool has a path, that file is
// run.
type onlyTools struct {
	children *process.Children
	tools    []job.StackTool
}

func (o onlyTools) RunHelper(ctx context.Context, path string, argv []string, dir string, env []string, stdin []byte, both bool) ([]byte, error) {
	out, err := o.children.RunHelper(ctx, path, argv, dir, env, stdin, both)
	if !strings.Contains(argv[2], "command -v") {
		return out, err
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if slices.Contains(o.tools, job.StackTool(filepath.Base(strings.TrimSpace(line)))) {
			found = append(found, line)
		}
	}
	for _, tool := range o.tools {
		if filepath.IsAbs(string(tool)) {
			found = append(found, string(tool)+"\n")
		}
	}
	return []byte(strings.Join(found, "")), err
}
