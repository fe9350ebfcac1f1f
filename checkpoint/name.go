package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/layout"
	"github.com/gangrun/gangrun/checkpoint/naming"
)

// Step returns the step in a checkpoint's name, or -1.
func Step(name string) int64 { return naming.Step(name) }

var (
	// unrelated matches the names of files that often lie beside checkpoints and are no checkpoints.
	unrelated = re(`(?i)^(events\.out\.tfevents|readme|license|slurm-|log\.)`)
	// pointers has the names of files that name the newest checkpoint.
	pointers = []string{"latest", "checkpoint", layout.Tracker, "last_checkpoint", "latest_step", "latest_universal"}
	// beside has the extensions of files that are no checkpoints.
	beside = []string{".log", ".lock", ".md", ".rst", ".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg",
		".csv", ".tsv", ".html", ".png", ".svg", ".jpg", ".pdf", ".out", ".err", ".prof", ".pbtxt"}
	// marker matches the names of files that a program writes when a checkpoint is complete.
	marker = re(`(?i)^_?(success|done|complete|completed|commit|committed|finished)([._-]success)?(\.txt)?$|^commit_success\.txt$`)
)

// maxPointer is the maximum size in bytes of a file that names the newest checkpoint.
const maxPointer = 4 << 10

// bookkeeping reports whether the name and the size of a file show that it is no checkpoint, but, for example,
// a log, a script, a table of metrics, a file that names the newest checkpoint, or a mark that a checkpoint is
// complete.
func bookkeeping(name string, size int64) bool {
	return unrelated().MatchString(name) || marker().MatchString(name) ||
		slices.Contains(beside, strings.ToLower(filepath.Ext(name))) ||
		size <= maxPointer && slices.Contains(pointers, name) || besides(name)
}
