package layers

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The limits of code that a reader must read at once. Tests and generated files do not count.
const (
	maxFields       = 15   // of a struct, with those of nested struct types
	maxFuncLines    = 80   // of a function, from "func" to its closing brace
	maxPackageLines = 3000 // of a package
)

// size is the size of something that has a limit.
type size struct {
	name string // "struct launcher.running", "func launcher.Run" or "package launcher"
	n    int
	max  int
}

// key returns the name under which an exception is listed. It has no package for structs and functions, so that they
// may be moved.
func (s size) key() string {
	kind, name, _ := strings.Cut(s.name, " ")
	if kind != "package" {
		name = name[strings.LastIndexByte(name, '/')+1:]
		_, name, _ = strings.Cut(name, ".")
	}
	return kind + " " + name
}

// TestSizes finds code that is larger than its limit. The entry of an exception must be updated when the code becomes
// smaller, and removed when the code is within its limit.
func TestSizes(t *testing.T) {
	all, err := readSizes(root)
	if err != nil {
		t.Fatal(err)
	}
	largest := map[string]int{}
	for _, s := range all {
		if s.n <= s.max {
			continue
		}
		largest[s.key()] = max(largest[s.key()], s.n)
		switch most, known := tooLarge[s.key()]; {
		case !known:
			t.Errorf("%s has %d %s, and may have %d: split it by subject", s.name, s.n, s.unit(), s.max)
		case s.n > most:
			t.Errorf("%s has grown from %d %s to %d, and may have %d: split it by subject", s.name, most, s.unit(), s.n, s.max)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tooLarge)) {
		if largest[key] == 0 {
			t.Errorf("%s is within its limit: remove it from tooLarge in internal/layers/toolarge_test.go", key)
		}
	}
}

func (s size) unit() string {
	if strings.HasPrefix(s.name, "struct ") {
		return "fields"
	}
	return "lines"
}

func readSizes(root string) (all []size, err error) {
	lines := map[string]int{}
	err = walkSources(root, func(dir, name string, src []byte) error {
		found, generated, err := fileSizes(dir, name, src)
		if err == nil && !generated {
			all = append(all, found...)
			lines[dir] += bytes.Count(src, []byte("\n"))
		}
		return err
	})
	for _, at := range slices.Sorted(maps.Keys(lines)) {
		all = append(all, size{"package " + at, lines[at], maxPackageLines})
	}
	return all, err
}

// fileSizes returns the structs and functions of a file of the package in dir.
func fileSizes(dir, name string, src []byte) (all []size, generated bool, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, false, err
	}
	if ast.IsGenerated(file) {
		return nil, true, nil
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			n := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1
			all = append(all, size{fmt.Sprintf("func %s.%s", dir, funcName(d)), n, maxFuncLines})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok || mayHaveManyFields(dir, spec.Name.Name) {
					continue
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					all = append(all, size{fmt.Sprintf("struct %s.%s", dir, spec.Name.Name), fields(s), maxFields})
				}
			}
		}
	}
	return all, false, nil
}

// mayHaveManyFields reports whether structs of a file may have many fields: the data types of internal/job, what a GPU
// driver reports, and plain options.
func mayHaveManyFields(dir, name string) bool {
	if dir == "topology/nvml" && name == "Device" {
		return true
	}
	return dir == "internal/job" || dir == "internal/wire" || strings.HasSuffix(strings.ToLower(name), "options")
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

// fields returns the number of fields of a struct. It counts the fields of nested struct types.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		of := f.Type
		for {
			switch at := of.(type) {
			case *ast.StarExpr:
				of = at.X
				continue
			case *ast.ArrayType:
				of = at.Elt
				continue
			}
			break
		}
		each := 1
		if inner, ok := of.(*ast.StructType); ok {
			each = fields(inner)
		}
		n += each * max(1, len(f.Names))
	}
	return n
}

func TestFileSizes(t *testing.T) {
	src := `package x
type plain struct { a, b int; c string }
type nested struct { plain; in []*struct{ a, b int }; d int }
type other []int
type runOptions struct { a int }
func (p *plain) long() {
	_ = 1
}
func short() {}
func (g *generic[T]) get() {}
`
	all, generated, err := fileSizes("launcher/x", "x.go", []byte(src))
	if err != nil || generated {
		t.Fatal(generated, err)
	}
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%s %d [%s]", s.name, s.n, s.key()))
	}
	want := []string{
		"struct launcher/x.plain 3 [struct plain]", "struct launcher/x.nested 4 [struct nested]",
		"func launcher/x.plain.long 3 [func plain.long]", "func launcher/x.short 1 [func short]", "func launcher/x.generic.get 1 [func generic.get]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, generated, err := fileSizes("x", "x.go", []byte("// Code generated by x. DO NOT EDIT.\n\npackage x\n")); !generated || err != nil {
		t.Error(generated, err)
	}
	if key := (size{name: "package " + path.Join("internal", "x.y")}).key(); key != "package internal/x.y" {
		t.Error(key)
	}
}
