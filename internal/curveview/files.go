package curveview

import (
	"os"
	"slices"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/metrics"
	"github.com/gangrun/gangrun/internal/text"
)

// maxFiles is the largest number of files with metrics that a directory may have.
const maxFiles = 256

// files returns paths with each directory replaced by the files with metrics that are below it.
func files(paths []string) (all []string, err error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			all = append(all, path)
			continue
		}
		var found []string
		metrics.Walk([]string{path}, func(path string, _ os.DirEntry) { found = append(found, path) })
		if len(found) == 0 || len(found) > maxFiles {
			return nil, failure.Usage("name the files; in a directory, gangrun looks for *.csv, *.tsv, *.jsonl, *.ndjson, *.wandb, *tfevents* and trainer_state.json", "directory %s has %s whose name is that of a file with metrics", path, text.Count(len(found), "file"))
		}
		slices.Sort(found)
		all = append(all, found...)
	}
	return all, nil
}
