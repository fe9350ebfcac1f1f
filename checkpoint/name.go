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

// unrelated are names of what lies beside checkpoints and is none.
var (
	unrelated = re(`(?i)^(events\.out\.tfevents|readme|license|slurm-|log\.)`)
	pointers  = []string{"latest", "checkpoint", layout.Tracker, "last_checkpoint", "latest_step", "latest_universal"}
	beside    = []string{".log", ".lock", ".md", ".rst", ".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg",
		".csv", ".tsv", ".html", ".png", ".svg", ".jpg", ".pdf", ".out", ".err", ".prof", ".pbtxt"}
	marker = re(`(?i)^_?(success|done|complete|completed|commit|committed|finished)([._-]success)?(\.txt)?$|^commit_success\.txt$`)
)

// maxPointer bounds a text file that only names the newest checkpoint, in bytes.
const maxPointer = 4 << 10

// bookkeeping reports whether a file of that name and size is no checkpoint,
// whatever it holds: a log, a script, a table of metrics, a pointer to the
// newest, a mark that all is there.
func bookkeeping(name string, size int64) bool {
	return unrelated().MatchString(name) || marker().MatchString(name) ||
		slices.Contains(beside, strings.ToLower(filepath.Ext(name))) ||
		size <= maxPointer && slices.Contains(pointers, name) || besides(name)
}
