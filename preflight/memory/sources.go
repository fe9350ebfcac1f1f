package memory

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

// Limits on the search of Key for the job's own code: how many levels Key descends into a
// directory, and how many entries it looks at. The code of most jobs stays below both limits.
const (
	SourceDepth   = 5
	SourceEntries = 20000
)

// sources returns the marks of files on this machine that the job may run or read: the files that its arguments
// name, the Python files in the directory of its script, those in the directories of PYTHONPATH, and the
// libraries in the directories of LD_LIBRARY_PATH. For a Python program without a script, the working directory
// takes the place of the script's directory. env is the environment of the job. sources returns nil if there
// are too many files.
func sources(spec job.Spec, env []string, facts []job.Facts) prints {
	all := make(prints)
	for _, arg := range slices.Concat(spec.Command, spec.Trial.Command, spec.Trial.Args) {
		if _, value, ok := strings.Cut(arg, "="); ok {
			arg = value
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(spec.Workdir, arg)
		}
		all.add(arg)
	}
	root, python := pythonRoot(spec, facts[0])
	if python {
		files, _, ok := pythonFiles(os.DirFS(root), SourceDepth, SourceEntries)
		if !ok {
			return nil
		}
		all.merge(root, files)
		all.packages(facts[0].Program.Path, environ.Lookup(env, "HOME"))
	}
	left := SourceEntries // for all of these directories together
	for _, dir := range searchPath(env, "PYTHONPATH", spec.Workdir) {
		files, looked, ok := pythonFiles(os.DirFS(dir), SourceDepth, left)
		left -= looked
		if !ok { // this is a large installation: only the files directly in the directory count
			files, _, ok = pythonFiles(os.DirFS(dir), 1, SourceEntries)
		}
		if !ok {
			return nil
		}
		all.merge(dir, files)
	}
	for _, dir := range searchPath(env, "LD_LIBRARY_PATH", spec.Workdir) {
		entries, _ := os.ReadDir(dir) // the loader cannot read this directory either
		if len(entries) > SourceEntries {
			return nil
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), ".so") {
				all.add(filepath.Join(dir, e.Name()))
			}
		}
	}
	return all
}

// pythonRoot returns the directory in which a Python program has its own modules. python is false
// if the job is not a Python program.
func pythonRoot(spec job.Spec, f job.Facts) (root string, python bool) {
	switch {
	case f.Script != nil && filepath.IsAbs(f.Script.Path):
		return filepath.Dir(f.Script.Path), true
	case f.Script != nil || strings.HasPrefix(filepath.Base(f.Program.Path), "python"):
		return spec.Workdir, true
	}
	return "", false
}

// searchPath returns the directories of a list such as PYTHONPATH. An empty or relative directory is below the
// working directory.
func searchPath(env []string, name, workdir string) []string {
	list := environ.Lookup(env, name)
	if list == "" {
		return nil
	}
	var dirs []string
	for _, dir := range strings.Split(list, ":") {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(workdir, dir)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// add adds the mark of a regular file, or of the regular file to which a link leads.
func (p prints) add(path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		p[path] = mark{Bytes: info.Size(), Time: info.ModTime()}
	}
}

// merge adds the prints of the files in a directory.
func (p prints) merge(dir string, files prints) {
	for name, m := range files {
		p[filepath.Join(dir, name)] = m
	}
}

// packages adds the marks of the directories in which a Python interpreter has its packages.
// Installing, changing or removing a package changes the time of its directory.
func (p prints) packages(interpreter, home string) {
	bin := filepath.Dir(interpreter)
	if dir, err := filepath.EvalSymlinks(bin); err == nil {
		bin = dir // /bin is /usr/bin
	}
	prefix := filepath.Dir(bin)
	for _, prefix := range []string{prefix, filepath.Join(prefix, "local"), filepath.Join(home, ".local")} {
		dirs, _ := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "*-packages"))
		for _, dir := range dirs {
			if info, err := os.Stat(dir); err == nil {
				p[dir] = mark{Time: info.ModTime()}
			}
		}
	}
}

// pythonFiles returns the marks of the Python modules in fsys, also of compiled ones, down to
// depth. It leaves out hidden directories and virtual environments. It looks at no more than limit
// entries, and returns how many it has looked at. ok is false if there are more.
func pythonFiles(fsys fs.FS, depth, limit int) (files prints, looked int, ok bool) {
	files, ok = make(prints), true
	_ = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if looked == limit {
			ok = false
			return fs.SkipAll
		}
		looked++
		if entry.IsDir() && name != "." {
			_, notVenv := fs.Stat(fsys, name+"/pyvenv.cfg")
			if strings.HasPrefix(entry.Name(), ".") || notVenv == nil || strings.Count(name, "/") >= depth-1 {
				return fs.SkipDir
			}
		}
		if strings.HasSuffix(name, ".py") || strings.HasSuffix(name, ".so") {
			if info, err := entry.Info(); err == nil {
				files[name] = mark{Bytes: info.Size(), Time: info.ModTime()}
			}
		}
		return nil
	})
	return files, looked, ok
}
