package metrics

import (
	"os"
	"path/filepath"
	"strings"
)

// StateName is the name of a file with metrics that Hugging Face's Trainer writes to each checkpoint.
const StateName = "trainer_state.json"

// HasMetrics reports whether a file of that name usually has metrics.
func HasMetrics(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, ".") {
		return false
	}
	for _, end := range []string{".csv", ".tsv", ".jsonl", ".ndjson", ".wandb"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.Contains(name, "tfevents") || name == StateName
}

const (
	maxEntries = 4096 // maximum number of entries that Walk looks at, in all directories together
	maxDepth   = 5    // levels below a directory
)

// unlikely has the names of directories in which no job leaves metrics.
var unlikely = map[string]bool{"node_modules": true, "__pycache__": true, "site-packages": true, "venv": true, "env": true}

// Walk looks for files with metrics in dirs, and in the directories up to five levels below. It calls do for each
// regular file that has metrics according to its name (see HasMetrics). It looks at 4,096 entries at most. It passes
// over hidden directories, over those of Python's and Node's packages, and over directories that it cannot read.
func Walk(dirs []string, do func(path string, e os.DirEntry)) {
	left, seen := maxEntries, map[string]bool{}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		if dir == "" || seen[dir] || depth > maxDepth || left <= 0 {
			return
		}
		seen[dir] = true
		in, err := os.Open(dir)
		if err != nil {
			return
		}
		defer in.Close()
		entries, _ := in.ReadDir(left)
		left -= len(entries)
		var below []string
		for _, e := range entries {
			switch {
			case e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !unlikely[e.Name()]:
				below = append(below, filepath.Join(dir, e.Name()))
			case e.Type().IsRegular() && HasMetrics(e.Name()):
				do(filepath.Join(dir, e.Name()), e)
			}
		}
		for _, d := range below {
			walk(d, depth+1)
		}
	}
	for _, dir := range dirs {
		walk(dir, 0)
	}
}
