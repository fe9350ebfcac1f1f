package checkpoint

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/naming"
	"github.com/gangrun/gangrun/internal/job"
)

// Listed is a checkpoint of a directory, and what it is good for.
type Listed struct {
	job.Checkpoint
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Newest is true if a new run with --resume would start from this checkpoint.
	Newest bool `json:"newest,omitempty"`
	// NamedBy is the name of a file or link that is beside the checkpoint and names it as the last checkpoint.
	// It is empty if there is no such file or link.
	NamedBy string `json:"named_by,omitempty"`
	// Own has the names of the checkpoint's files and directories in the examined directory. It is empty if the
	// checkpoint is the examined directory itself, if it is in another directory, or if its files cannot be
	// told from other files.
	Own []string `json:"-"`
}

// List verifies all possible checkpoints of dir and returns them, the newest first. If deep is true, List also
// looks at the numbers of the tensors. It returns an error if dir cannot be read, or if ctx ends.
func List(ctx context.Context, dir string, deep bool) ([]Listed, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	all, skipped, err := candidates(dir)
	if err != nil {
		return nil, err
	}
	named := pointed(dir)
	list := make([]Listed, 0, len(all))
	taken := -1 // index of the checkpoint from which a job would resume
	for i, c := range all {
		j := c.judge(ctx, all[i+1:], deep)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l := Listed{Checkpoint: j.found, Verdict: j.verdict, Why: j.why, NamedBy: named[filepath.Base(c.path)], Own: c.own(dir)}
		for _, s := range c.shards {
			l.NamedBy = cmp.Or(l.NamedBy, named[filepath.Base(s.path)])
		}
		if j.err != nil {
			l.Checkpoint = job.Checkpoint{Path: c.path, Step: c.step, Bytes: c.files.bytes(), Time: c.time}
		}
		best := taken < 0 || list[taken].Verdict != Good
		if j.verdict == Good && best || j.err == nil && j.verdict != NotFinite && taken < 0 {
			taken = len(list)
		}
		list = append(list, l)
	}
	if taken >= 0 {
		list[taken].Newest = true
	}
	for _, s := range skipped {
		list = append(list, Listed{Checkpoint: job.Checkpoint{Path: s.Path, Step: -1}, Verdict: Broken, Why: s.Reason})
	}
	unfinished, err := temporaries(dir)
	return append(list, unfinished...), err
}

// own returns the names of the candidate's files and directories in dir. It returns nil if it cannot tell them.
func (c candidate) own(dir string) []string {
	if c.shards != nil {
		var own []string
		for _, s := range c.shards {
			names := s.own(dir)
			if names == nil {
				return nil
			}
			own = append(own, names...)
		}
		return own
	}
	name := filepath.Base(c.path)
	if filepath.Dir(c.path) != filepath.Clean(dir) || filepath.Clean(c.path) == filepath.Clean(dir) {
		return nil
	}
	if exists(c.path) {
		return []string{name}
	}
	if prefix, ok := tensorFlowPrefix(c.path); ok && prefix == c.path {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil
		}
		var own []string
		for _, e := range entries {
			if rest, ok := strings.CutPrefix(e.Name(), name); ok && (rest == ".index" || rest == ".meta" || tensorFlowData().MatchString(rest)) {
				own = append(own, e.Name())
			}
		}
		return own
	}
	return nil
}

// temporaries returns the files and directories of dir that have the name of an unfinished checkpoint: a job is
// still writing them, or died before it had finished.
func temporaries(dir string) (all []Listed, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !naming.Temporary(e.Name()) || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), "~") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		files, err := lookAt(path)
		if files == nil && err != nil {
			continue // it is gone, or cannot be read
		}
		all = append(all, Listed{
			Checkpoint: job.Checkpoint{Path: path, Step: Step(e.Name()), Bytes: files.bytes(), Time: files.newest()},
			Verdict:    Unfinished, Why: "it has the name of a temporary file: it is being written, or its writer has died",
		})
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Or(cmp.Compare(b.Step, a.Step), strings.Compare(a.Path, b.Path)) })
	return all, nil
}

// pointed returns the checkpoints that small files and links in dir name as the last checkpoint. The key is the
// name of a checkpoint, or of the directory in dir that has it, and the value the name of the file or link.
func pointed(dir string) map[string]string {
	named := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return named
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if target, err := os.Readlink(path); err == nil {
			for _, name := range naming.Places(dir, target) {
				named[name] = e.Name()
			}
			if real, err := filepath.EvalSymlinks(path); err == nil {
				if realDir, err := filepath.EvalSymlinks(dir); err == nil {
					for _, name := range naming.Places(realDir, real) {
						named[name] = e.Name()
					}
				}
			}
			continue
		}
		if !slices.Contains(pointers, e.Name()) {
			continue
		}
		f, done, err := openFile(context.Background(), path)
		if err != nil {
			continue
		}
		if f.Size <= maxPointer {
			content, err := f.Bytes(0, f.Size)
			for _, name := range naming.Pointed(dir, string(content)) {
				if err == nil {
					named[name] = e.Name()
				}
			}
		}
		done()
	}
	return named
}
