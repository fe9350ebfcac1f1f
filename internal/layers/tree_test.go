package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// readTree returns the packages below root, the directory of go.mod, sorted by their paths. It reads every Go file
// that is not a test, whatever its build tags are, so that it finds the imports of all builds.
func readTree(root string) ([]pkg, error) {
	found := make(map[string]*pkg)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && outsideModule(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		at := filepath.ToSlash(dir)
		if found[at] == nil {
			found[at] = &pkg{path: at}
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return found[at].add(d.Name(), src)
	})
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for _, at := range slices.Sorted(maps.Keys(found)) {
		p := *found[at]
		p.ours, p.outside = unique(p.ours), unique(p.outside)
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

// outsideModule reports whether the pattern ./... of the go command leaves out a directory.
func outsideModule(name, base string) bool {
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// add adds the imports of a file, and its uses of the clock.
func (p *pkg) add(name string, src []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s/%s: import %s: %w", p.path, name, spec.Path.Value, err)
		}
		switch own, ok := strings.CutPrefix(imported, module+"/"); {
		case ok:
			p.ours = append(p.ours, own)
		case imported == module:
			p.ours = append(p.ours, ".")
		default:
			p.outside = append(p.outside, imported)
		}
		if imported == "time" {
			p.clocks = append(p.clocks, clocks(files, file, spec)...)
		}
	}
	return nil
}

// clock has the names in package time that read the clock or wait.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// clocks returns the uses of the clock in a file that imports time. A dot import counts as a use, because it hides the
// uses.
func clocks(files *token.FileSet, file *ast.File, spec *ast.ImportSpec) []string {
	name := "time"
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if name == "." {
		return []string{fmt.Sprintf("%s: import . \"time\"", position(files, spec))}
	}
	var uses []string
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && slices.Contains(clock, sel.Sel.Name) {
			uses = append(uses, fmt.Sprintf("%s: time.%s", position(files, sel), sel.Sel.Name))
		}
		return true
	})
	return uses
}

func position(files *token.FileSet, n ast.Node) string {
	at := files.Position(n.Pos())
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}
