package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCodePage checks that the packages and names in docs/code.md still exist. On that page, a package in backquotes
// may be followed by a colon and names that it declares.
func TestCodePage(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/code.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^` ]+)`(:?)")
	named := 0
	for line := range strings.Lines(string(text)) {
		var declared map[string]bool // the names that the last package declares; nil if no colon follows the package
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			switch word := m[1]; {
			case isPackage(word):
				declared = nil
				if m[2] != "" {
					declared = declarations(t, word)
				}
			case strings.Contains(word, "/") && !strings.HasPrefix(word, "."):
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					t.Errorf("docs/code.md names %s, which does not exist: name where it has gone", word)
				}
			case declared != nil:
				named++
				if !declared[word] {
					t.Errorf("docs/code.md: %s is not declared by its package any more: name where it has gone\n\t%s", word, strings.TrimSpace(line))
				}
			}
		}
	}
	if named < 40 {
		t.Errorf("docs/code.md has %d names of declarations: the test does not find them", named)
	}
}

// isPackage reports whether a directory of the module has Go files other than tests.
func isPackage(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(root, dir, "*.go"))
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			return true
		}
	}
	return false
}

// declarations returns the names that a package declares, with those of its methods.
func declarations(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}
