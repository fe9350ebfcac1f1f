// Package layers has only tests. They compare the table "Rooms" of docs/design.md with the imports of gangrun's
// packages.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var ours = table{rooms: rooms, reserves: reserves}

func TestTreeKeepsToItsRooms(t *testing.T) {
	pkgs, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range ours.check(pkgs) {
		t.Error(line)
	}
}

// TestTreeIsWhatGoLists checks that readTree finds every package that the go command would build.
func TestTreeIsWhatGoLists(t *testing.T) {
	pkgs, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]pkg)
	for _, p := range pkgs {
		seen[p.path] = p
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	listed := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; listed++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		own, ok := strings.CutPrefix(p.ImportPath, module+"/")
		if !ok {
			t.Errorf("%s is not below %s: change module in internal/layers/table_test.go", p.ImportPath, module)
			continue
		}
		known, ok := seen[own]
		if !ok {
			t.Errorf("go list shows %s, the walk through the tree did not", own)
		}
		for _, imported := range p.Imports {
			if !slices.Contains(known.ours, strings.TrimPrefix(imported, module+"/")) && !slices.Contains(known.outside, imported) {
				t.Errorf("go list shows that %s imports %s, the walk through the tree did not", own, imported)
			}
		}
	}
	if listed == 0 {
		t.Error("go list shows no package")
	}
}

// TestTableIsSound finds rows that can have no effect: a path that is listed twice, or a pattern that matches no room.
func TestTableIsSound(t *testing.T) {
	var paths []string
	for _, r := range rooms {
		paths = append(paths, r.paths...)
	}
	for i, p := range paths {
		if slices.Contains(paths[:i], p) {
			t.Errorf("%s has two rows", p)
		}
	}
	known := func(pattern string) bool {
		pattern = strings.TrimPrefix(pattern, "!")
		return slices.ContainsFunc(paths, func(p string) bool {
			return p == pattern || match(pattern, strings.TrimSuffix(p, "/..."))
		})
	}
	for _, r := range rooms {
		for _, pattern := range r.ours.patterns {
			if !known(pattern) {
				t.Errorf("%s: %s names no room", r, pattern)
			}
		}
	}
	for _, s := range reserves {
		for _, to := range s.to {
			if !known(to) {
				t.Errorf("%s: %s names no room", s, to)
			}
		}
	}
}

// TestDesignHasTheSameRooms checks that the first column of the table in the design has the same paths as the table
// here.
func TestDesignHasTheSameRooms(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Rooms\n")
	if !ok {
		t.Fatal("docs/design.md has no section \"Rooms\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var documented, tabled []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				documented = append(documented, strings.TrimSuffix(m[1], "/"))
			}
		}
	}
	for _, r := range rooms {
		for _, p := range r.paths {
			tabled = append(tabled, strings.TrimSuffix(p, "/..."))
		}
	}
	for _, p := range documented {
		// docs has no Go package, so it has no row here.
		if p != "docs" && !slices.Contains(tabled, p) {
			t.Errorf("docs/design.md has a room %s, internal/layers/table_test.go has none", p)
		}
	}
	for _, p := range tabled {
		if !slices.Contains(documented, p) {
			t.Errorf("internal/layers/table_test.go has a room %s, the table \"Rooms\" of docs/design.md has none", p)
		}
	}
}
