package preflight

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// identity returns a hash of everything that a trial's result hangs on, as far
// as it is known: the programs and scripts of the hosts, the command, the
// environment, the inputs and the sources. Secret values go in, and nothing
// can be read out. ok is false when a program is not known, or sources are
// nil: such a trial is not remembered.
func identity(spec job.Spec, facts []job.Facts, sources prints) (key string, ok bool) {
	// What does not change what one rank does. A new field of Spec counts until
	// it is named here.
	spec.Name, spec.Ranks, spec.Retries, spec.Policy, spec.Resume = "", 0, 0, nil, false
	spec.Grace, spec.Timeout, spec.Output, spec.Stdin, spec.ExitCode, spec.Preflight = 0, 0, "", "", "", ""
	spec.InitTimeout = 0
	type host struct {
		Name, Program, Script string
		Inputs                map[string]int64
	}
	var hosts []host
	for _, f := range facts {
		h := host{Name: f.Host, Program: f.Program.SHA256, Inputs: make(map[string]int64)}
		if h.Program == "" {
			return "", false
		}
		if f.Script != nil {
			h.Script = f.Script.SHA256
		}
		for _, in := range f.Inputs {
			h.Inputs[in.Path] = in.Bytes
		}
		hosts = append(hosts, h)
	}
	data, err := json.Marshal(struct {
		Spec    job.Spec
		Hosts   []host
		Sources prints
	}{spec, hosts, sources})
	if err != nil || sources == nil {
		return "", false
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), true
}

// What sources looks at, at most: a job's own code is less deep and smaller.
const (
	sourceDepth   = 5
	sourceEntries = 20000
)

// sources takes the prints, on this machine, of what else the job may run: the
// files that its arguments name, and the Python files in its script's directory
// (without a script, the working directory of a Python program). It is nil when
// there are too many to look at.
func sources(spec job.Spec, facts []job.Facts) prints {
	all := make(prints)
	for _, arg := range slices.Concat(spec.Command, spec.Trial.Command, spec.Trial.Args) {
		if _, value, ok := strings.Cut(arg, "="); ok {
			arg = value
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(spec.Workdir, arg)
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			all[arg] = mark{info.Size(), info.ModTime()}
		}
	}
	first := facts[0]
	var root string
	switch {
	case first.Script != nil && filepath.IsAbs(first.Script.Path):
		root = filepath.Dir(first.Script.Path)
	case first.Script != nil || strings.HasPrefix(filepath.Base(first.Program.Path), "python"):
		root = spec.Workdir
	default:
		return all
	}
	python, ok := pythonFiles(os.DirFS(root))
	if !ok {
		return nil
	}
	for name, m := range python {
		all[filepath.Join(root, name)] = m
	}
	return all
}

// pythonFiles takes the prints of the Python files in fsys, down to
// sourceDepth; hidden directories and virtual environments are left out. ok is
// false when there are more than sourceEntries entries.
func pythonFiles(fsys fs.FS) (files prints, ok bool) {
	files, ok = make(prints), true
	entries := 0
	_ = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if entries++; entries > sourceEntries {
			ok = false
			return fs.SkipAll
		}
		if entry.IsDir() && name != "." {
			_, notVenv := fs.Stat(fsys, name+"/pyvenv.cfg")
			if strings.HasPrefix(entry.Name(), ".") || notVenv == nil || strings.Count(name, "/") >= sourceDepth-1 {
				return fs.SkipDir
			}
		}
		if strings.HasSuffix(name, ".py") {
			if info, err := entry.Info(); err == nil {
				files[name] = mark{info.Size(), info.ModTime()}
			}
		}
		return nil
	})
	return files, ok
}
