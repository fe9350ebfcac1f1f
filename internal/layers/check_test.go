package layers

import (
	"fmt"
	"slices"
	"strings"
)

// pkg describes a package of gangrun. It includes all files that are not tests, whatever their build tags are.
type pkg struct {
	path    string   // relative to the module
	ours    []string // imports of gangrun's own packages, relative to the module
	outside []string // all other imports
	clocks  []string // uses of the clock, as "file.go:12: time.Now"
}

// table has the rules with which the packages are compared.
type table struct {
	rooms    []room
	reserves []reserve
}

// check returns a line for each place where pkgs break a rule of the table, in the order of pkgs.
func (t table) check(pkgs []pkg) []string {
	byPath := make(map[string]pkg)
	for _, p := range pkgs {
		byPath[p.path] = p
	}
	var found []string
	for _, p := range pkgs {
		r, ok := t.room(p.path)
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("%s is in no room: give it a row in internal/layers/table_test.go and in the table \"Rooms\" of docs/design.md, or put its code into a room that is there", p.path))
			continue
		case r.noGo:
			found = append(found, fmt.Sprintf("%s holds a Go package; %s", p.path, r))
			continue
		}
		found = append(found, t.direct(p, r)...)
		found = append(found, t.reached(p, r, byPath)...)
	}
	return found
}

// direct returns the rules that p's own files break.
func (t table) direct(p pkg, r room) []string {
	var found []string
	for _, imported := range p.ours {
		if !r.ours.allows(imported) {
			found = append(found, fmt.Sprintf("%s imports %s; %s", p.path, imported, r))
		}
	}
	for _, imported := range p.outside {
		if held(r.not, imported) || r.stdOnly && !standard(imported) {
			found = append(found, fmt.Sprintf("%s imports %s; %s", p.path, imported, r))
		}
	}
	for _, imported := range slices.Concat(p.ours, p.outside) {
		for _, s := range t.reserves {
			if match(s.pattern, imported) && !slices.Contains(s.to, p.path) {
				found = append(found, fmt.Sprintf("%s imports %s; %s", p.path, imported, s))
			}
		}
	}
	if r.noClock {
		for _, use := range p.clocks {
			found = append(found, fmt.Sprintf("%s uses the clock, %s; %s", p.path, use, r))
		}
	}
	return found
}

// reached returns the packages that p must not import, but reaches through other packages. It follows only imports
// that their own rooms allow, because other imports are reported where they are.
func (t table) reached(p pkg, r room, byPath map[string]pkg) []string {
	type step struct {
		path string
		way  []string
	}
	var found []string
	seen := map[string]bool{p.path: true}
	queue := []step{{path: p.path}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		here, ok := t.room(at.path)
		if !ok {
			continue
		}
		for _, next := range byPath[at.path].ours {
			if seen[next] || !here.ours.allows(next) {
				continue
			}
			seen[next] = true
			if !r.ours.allows(next) {
				found = append(found, fmt.Sprintf("%s reaches %s through %s; %s", p.path, next, strings.Join(at.way, " and "), r))
				continue
			}
			queue = append(queue, step{next, append(slices.Clone(at.way), next)})
		}
	}
	return found
}

// room returns the row of the table that applies to path.
func (t table) room(path string) (room, bool) {
	for _, r := range t.rooms {
		if held(r.paths, path) {
			return r, true
		}
	}
	return room{}, false
}

func (r rule) allows(path string) bool { return held(r.patterns, path) == r.closed }

// String describes the row in words.
func (r room) String() string {
	var says []string
	switch {
	case r.noGo:
		says = append(says, "it holds no Go")
	case r.ours.closed && len(r.ours.patterns) == 0:
		says = append(says, "it imports none of ours")
	case r.ours.closed:
		says = append(says, "of ours it imports only "+words(r.ours.patterns))
	case len(r.ours.patterns) > 0:
		says = append(says, "it does not import "+words(r.ours.patterns))
	}
	if r.stdOnly {
		says = append(says, "else the standard library only")
	}
	if len(r.not) > 0 {
		says = append(says, "not "+words(r.not))
	}
	if r.noClock {
		says = append(says, "no clock")
	}
	return fmt.Sprintf("the row of %s says: %s", strings.Join(r.paths, ", "), strings.Join(says, "; "))
}

func words(patterns []string) string {
	return strings.ReplaceAll(strings.Join(patterns, ", "), "!", "but for ")
}

// String describes the reserve in words.
func (s reserve) String() string {
	if len(s.to) == 0 {
		return fmt.Sprintf("%s is imported by none", s.pattern)
	}
	return fmt.Sprintf("%s is imported by %s only", s.pattern, strings.Join(s.to, ", "))
}

// held reports what the last pattern that matches path says. A pattern that begins with "!" says no, and other
// patterns say yes. If no pattern matches, the result is no.
func held(patterns []string, path string) bool {
	in := false
	for _, pattern := range patterns {
		plain, negated := strings.CutPrefix(pattern, "!")
		if match(plain, path) {
			in = !negated
		}
	}
	return in
}

// match reports whether path matches pattern. The pattern "root/..." matches root and everything below it.
func match(pattern, path string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return path == root || below && strings.HasPrefix(path, root+"/")
}

// standard reports whether path is a package of the standard library. It must not be a package of gangrun.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return path != "C" && !strings.Contains(first, ".")
}
