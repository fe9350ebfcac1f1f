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

// candidate is what may be a checkpoint.
type candidate struct {
	path  string
	step  int64 // -1 for none
	time  time.Time
	dir   bool
	files tree // the files below a directory, or the one file that it is
	tier  tier
	last  bool // it is taken only when nothing else is left

	program bool    // it is of a known program, whose names follow other rules
	numbers []int64 // of the rank or shard, in its name
	of      int64   // how many shards there are, in its name; 0 if it does not say
	// shards are the files or directories of a checkpoint to which each rank has written its own. It then is the first
	// of them, with the files and the time of all.
	shards  []candidate
	others  []candidate // of the same step, and itself; nil if there are none
	checked *checked
}

// tier says how likely something is a checkpoint. Only those of the highest
// tier that a directory holds are looked at.
type tier int

const (
	tierNone     tier = iota
	tierText          // plain files and named like texts
	tierPlain         // plain
	tierNumbered      // plain, with a step
	tierKnown         // of a known format, by content or by name
)

var (
	texts = []string{".txt", ".json", ".jsonl", ".xml"}
	// A job's best checkpoint may hold no more than its weights.
	finest = re(`(?i)(^|[^a-z])best([^a-z]|$)`)
)

// candidates returns what may be a checkpoint in dir, newest first, and links
// that lead nowhere. The files of several ranks that make one checkpoint are one candidate.
func candidates(dir string) (all []candidate, skipped []Skipped, err error) {
	return find(dir, together)
}

// separate is candidates with each file of a rank as a candidate of its own.
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
	whole := false // dir is itself one checkpoint
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
				continue // which is an entry of its own
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

// consider returns what lies at path as a candidate, if it can be one at all.
func consider(path string) (candidate, bool) {
	name := filepath.Base(path)
	c := candidate{path: path, step: Step(name), last: finest().MatchString(name), checked: &checked{}}
	info, err := os.Stat(path)
	switch {
	case err != nil: // a name that stands for several files
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
			c.tier, c.time = tierKnown, info.ModTime() // Verify will say why
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

// tierOf returns how likely a file is a checkpoint, or part of one with that step,
// and the format that it seems to have. root is the candidate to which the file belongs.
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
		head, _ = f.Bytes(0, min(f.Size, 64)) // a file that cannot be read is recognised by its name
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
