package contain

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// action says how a path comes into the view.
type action string

// The actions.
const (
	overlay  action = "overlay"   // writes go into the layer
	bind     action = "bind"      // unchanged, without what is mounted below it
	bindAll  action = "bind all"  // unchanged, with what is mounted below it
	file     action = "file"      // one file
	skeleton action = "directory" // a new directory of the layer
	link     action = "link"      // a symbolic link
)

// step brings one path into the view. Everything above that path is already there.
type step struct {
	action
	path string
}

// most limits the entries of a directory that is built entry by entry.
const most = 4096

// plan returns the steps that bring all files into the view, in order. locked is true if the kernel lets no process in
// the user namespace look below mounts (MNT_LOCKED). A directory above a mount is then built entry by entry. list
// returns the entries of a directory. If a directory cannot be listed, only mounts, wanted paths and the directories
// above these come into the view.
func plan(mounts []mount, locked bool, wanted []string, list func(dir string) ([]fs.DirEntry, error)) ([]step, error) {
	p := planner{mounts: mounts, locked: locked, wanted: wanted, list: list}
	err := p.cover("/")
	return p.steps, err
}

type planner struct {
	mounts []mount
	locked bool
	wanted []string
	list   func(string) ([]fs.DirEntry, error)
	steps  []step
}

// system has the directories of the kernel.
var system = []string{"/dev", "/proc", "/sys"}

func (p *planner) cover(path string) error {
	add := func(a action) { p.steps = append(p.steps, step{a, path}) }
	m, below := p.on(path), p.below(path)
	switch {
	case m.hidden && m.point == path:
		return nil
	case m.file && m.point == path:
		add(file)
		return nil
	case m.kind == "autofs" && len(below) > 0: // files of users are mounted there
		add(skeleton)
	case slices.Contains(system, path), virtual[m.kind]:
		add(bindAll)
		return nil
	case p.locked && len(below) > 0:
		add(skeleton)
		return p.entries(path)
	case m.readonly:
		add(bind)
	default:
		add(overlay)
	}
	for _, next := range below {
		if err := p.cover(next); err != nil {
			return err
		}
	}
	return nil
}

// entries covers the entries of a directory, one by one.
func (p *planner) entries(dir string) error {
	entries, err := p.list(dir)
	if err != nil && len(entries) == 0 {
		for _, next := range p.known(dir) {
			for i := len(dir) + 1; i < len(next); i++ {
				if next[i] == '/' {
					p.steps = append(p.steps, step{skeleton, next[:i]})
				}
			}
			if err := p.cover(next); err != nil {
				return err
			}
		}
		return nil
	}
	if len(entries) > most {
		return &Error{Step: "take apart the directory", Path: dir, Text: "it has too many entries"}
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if err := p.cover(path); err != nil {
				return err
			}
		case e.Type() == fs.ModeSymlink:
			p.steps = append(p.steps, step{link, path})
		case e.Type().IsRegular():
			p.steps = append(p.steps, step{file, path})
		default:
			p.steps = append(p.steps, step{bind, path})
		}
	}
	return nil
}

// known returns the known entries of a directory that cannot be listed. These are mount points, and the entries that
// lead to wanted paths without a mount point on the way.
func (p *planner) known(dir string) []string {
	paths := p.below(dir)
	for _, path := range p.wanted {
		if path == dir || !within(path, dir) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(path[len(dir):], "/"), "/")
		next := filepath.Join(dir, name)
		if !slices.ContainsFunc(paths, func(at string) bool { return within(at, next) || within(next, at) }) {
			paths = append(paths, next)
		}
	}
	return paths
}

// on returns the mount on which path is.
func (p *planner) on(path string) (found mount) {
	for _, m := range p.mounts {
		if within(path, m.point) && len(m.point) >= len(found.point) {
			found = m
		}
	}
	return found
}

// below returns the mount points below a directory. It leaves out those that are below another one of them.
func (p *planner) below(dir string) (points []string) {
	var all []string
	for _, m := range p.mounts {
		if m.point != dir && within(m.point, dir) {
			all = append(all, m.point)
		}
	}
	slices.Sort(all)
	for _, point := range slices.Compact(all) {
		if !slices.ContainsFunc(points, func(above string) bool { return within(point, above) }) {
			points = append(points, point)
		}
	}
	return points
}

// within reports whether path is dir or is below dir.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
