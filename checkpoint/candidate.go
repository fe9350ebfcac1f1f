package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/naming"
)

// candidate is a file, a directory or a set of files that may be a checkpoint.
type candidate struct {
	path  string
	step  int64 // -1 for none
	time  time.Time
	dir   bool
	files tree // the files below the directory, or the one file
	tier  tier
	last  bool // the name says "best"; it is used only if there is no other

	program bool    // a known program wrote it, whose names follow other rules
	numbers []int64 // of ranks or shards, from its name
	of      int64   // number of shards, from its name; 0 if the name does not say it
	// shards has the files or directories of a checkpoint to which each rank has written its own. The other
	// fields are then those of the first shard, but files and time are those of all shards.
	shards  []candidate
	others  []candidate // all candidates of the same step, including itself; nil if there are no others
	checked *checked
}

// tier says how likely it is that a file or directory is a checkpoint. gangrun considers only the candidates of
// the highest tier in a directory.
type tier int

const (
	tierNone     tier = iota
	tierText          // named like a text
	tierPlain         // its format is unknown
	tierNumbered      // its format is unknown, but it has a step
	tierKnown         // its content or name shows the format
)

var (
	texts = []string{".txt", ".json", ".jsonl", ".xml"}
	// finest matches the name of a best checkpoint, which may have only weights.
	finest = re(`(?i)(^|[^a-z])best([^a-z]|$)`)
)

// candidates returns the possible checkpoints in dir, newest first, and the links that lead to nothing. The
// files of several ranks that make one checkpoint are one candidate.
func candidates(dir string) (all []candidate, skipped []Skipped, err error) {
	return find(dir, together)
}

// separate is like candidates, but each rank's file is a candidate of its own.
func separate(dir string) (all []candidate, skipped []Skipped, err error) {
	return find(dir, func(all []candidate) []candidate { return all })
}

func find(dir string, join func([]candidate) []candidate) (all []candidate, skipped []Skipped, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	whole := false // dir itself is one checkpoint
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, dcpSuffix) || hfIndex().MatchString(name) {
			whole = true
		}
		if naming.Temporary(name) || naming.Hidden(name) || besides(name) {
			continue
		}
		path := filepath.Join(dir, name)
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := filepath.EvalSymlinks(path)
			if err != nil {
				skipped = append(skipped, Skipped{Path: path, Reason: "it is a link to nothing"})
				continue
			}
			if filepath.Dir(target) == real {
				continue // find considers the target as an entry of its own
			}
			path = target
		}
		if prefix, ok := tensorFlowPrefix(path); ok {
			path = prefix
		} else if set, ok := lammpsSet(path); ok {
			path = set
		}
		if seen[path] {
			continue
		}
		seen[path] = true
		if c, ok := consider(path); ok {
			all = append(all, c)
		}
	}
	return rank(dir, all, whole, join), skipped, nil
}

// consider returns the candidate at path. ok is false if it cannot be a checkpoint.
func consider(path string) (candidate, bool) {
	name := filepath.Base(path)
	c := candidate{path: path, step: Step(name), last: finest().MatchString(name), checked: &checked{}}
	info, err := os.Stat(path)
	switch {
	case err != nil: // the name stands for several files
		c.tier = tierKnown
		index := path + ".index"
		if base, ok := lammpsBase(path); ok {
			index = base
		}
		if info, err = os.Stat(index); err == nil {
			c.time, c.program = info.ModTime(), true
		}
	case info.IsDir():
		files, err := lookAt(path)
		if err != nil && !flaw.Is(err) {
			c.tier, c.time = tierKnown, info.ModTime() // Verify will report the error
			break
		}
		c.dir, c.files, c.time = true, files, files.newest()
		if files.has(espressoSchema) {
			c.tier, c.step, c.program = tierKnown, stepOf(name, formatEspresso), true
		}
		for i := 0; i < len(files) && c.tier < tierKnown; i++ {
			t, _ := tierOf(path, filepath.Join(path, files[i].name), files[i].size, c.step)
			c.tier = max(c.tier, t)
		}
	case info.Mode().IsRegular():
		var format string
		c.tier, format = tierOf(path, path, info.Size(), c.step)
		c.step, c.time, c.program = stepOf(name, format), info.ModTime(), programOfFormat(format) != nil
		c.files = tree{{name, info.Size(), info.ModTime()}}
	}
	return c, c.tier > tierNone
}

// tierOf returns how likely it is that a file is a checkpoint, or part of one, and the format that the file
// seems to have. root is the candidate to which the file belongs, and step is the step of the candidate.
func tierOf(root, path string, size, step int64) (_ tier, format string) {
	name := filepath.Base(path)
	if name == dcpMetadata || strings.HasSuffix(name, dcpSuffix) || hfIndex().MatchString(name) {
		return tierKnown, ""
	}
	if bookkeeping(name, size) {
		return tierNone, ""
	}
	var head []byte
	if f, done, err := openFile(context.Background(), path); err == nil {
		head, _ = f.Bytes(0, min(f.Size, 64)) // if the file cannot be read, only its name counts
		done()
	}
	format = judged(root, path, head)
	switch {
	case isOutput(head):
		return tierNone, ""
	case slices.Contains(texts, strings.ToLower(filepath.Ext(name))):
		return tierText, format
	case format != formatPlain || tensorFlowData().MatchString(name):
		return tierKnown, format
	case step >= 0:
		return tierNumbered, format
	default:
		return tierPlain, format
	}
}
