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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// comparison is a place in the code that compares a text with a literal.
type comparison struct {
	at   string // "launcher/lost.go:12"
	text string
}

// TestTypesDecide finds code that depends on the wording of gangrun's own messages. That is a comparison with a
// literal of two words or more that is also part of another literal, which is not compared. Such code must use a typed
// reason of internal/job instead.
func TestTypesDecide(t *testing.T) {
	matches, said, err := readSentences(root)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range matches {
		// The rules of diagnosis match the output of other programs, which may have the same words. Lines that gangrun
		// itself has written have a Reason, which is used before the texts of rules.
		if strings.HasPrefix(m.at, "internal/diagnose/rules/") {
			continue
		}
		own, by := ownSentence(m.text, said)
		if !own {
			continue
		}
		if notOurs[m.text] != "" {
			used[m.text] = true
			continue
		}
		t.Errorf("%s decides by %q, which gangrun says itself (%q): use a typed reason of internal/job", m.at, m.text, by)
	}
	for _, text := range slices.Sorted(maps.Keys(notOurs)) {
		if !used[text] {
			t.Errorf("nothing decides by %q any more: remove the exception from internal/layers/sentences_test.go", text)
		}
	}
}

// twoWords matches a text with two words. Names and units do not count as messages.
var twoWords = regexp.MustCompile(`[A-Za-z]+[,:;]? [A-Za-z]+`)

// ownSentence reports whether a literal that is not compared contains text, and returns that literal.
func ownSentence(text string, said []string) (bool, string) {
	if !twoWords.MatchString(text) {
		return false, ""
	}
	text = strings.ToLower(text) // rules ignore the case of letters
	for _, s := range said {
		if strings.Contains(strings.ToLower(s), text) {
			return true, s
		}
	}
	return false, ""
}

// comparing has the functions of strings and bytes that compare with their second argument.
var comparing = []string{"Contains", "HasPrefix", "HasSuffix", "Index", "LastIndex", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Count", "TrimPrefix", "TrimSuffix"}

// literals returns the literals of a file that are compared, and all other literals. The use of a constant counts as
// the use of its literal. constants has the literals by the names of the constants.
func literals(dir, name string, src []byte, constants map[string]string) (matches []comparison, said []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, nil, err
	}
	compared := map[*ast.BasicLit]bool{}
	names := map[*ast.Ident]bool{} // constants that are compared
	mark := func(expr ast.Node) {
		ast.Inspect(expr, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					compared[n] = true
				}
			case *ast.Ident:
				names[n] = true
			}
			_, call := n.(*ast.CallExpr)
			return !call
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && slices.Contains(comparing, f.Sel.Name) {
				if of, ok := f.X.(*ast.Ident); ok && (of.Name == "strings" || of.Name == "bytes") {
					mark(n.Args[1])
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				mark(n.X)
				mark(n.Y)
			}
		case *ast.CaseClause:
			for _, expr := range n.List {
				mark(expr)
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Needles" {
				mark(n.Value)
			}
		}
		return true
	})
	declared := map[*ast.BasicLit]bool{}
	skip := map[*ast.Ident]bool{} // the names of declared constants
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				for _, spec := range n.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						skip[name] = true
					}
					for _, value := range spec.(*ast.ValueSpec).Values {
						if lit, ok := value.(*ast.BasicLit); ok {
							declared[lit] = true
						}
					}
				}
			}
		case *ast.Ident:
			text, ok := constants[n.Name]
			switch {
			case !ok || skip[n]:
			case names[n]:
				matches = append(matches, comparison{fmt.Sprintf("%s/%s:%d", dir, filepath.Base(name), files.Position(n.Pos()).Line), text})
			default:
				said = append(said, text)
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || declared[lit] {
			return true
		}
		text, failed := strconv.Unquote(lit.Value)
		switch {
		case failed != nil:
			err = failed
		case compared[lit]:
			matches = append(matches, comparison{fmt.Sprintf("%s/%s:%d", dir, filepath.Base(name), files.Position(lit.Pos()).Line), text})
		default:
			said = append(said, text)
		}
		return true
	})
	return matches, said, err
}

// constantTexts adds the exported constants of a file whose texts have two words or more. Unexported names could also
// be those of variables.
func constantTexts(name string, src []byte, to map[string]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			return true
		}
		for _, spec := range decl.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				lit, ok := value.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && spec.Names[i].IsExported() && twoWords.MatchString(text) {
					to[spec.Names[i].Name] = text
				}
			}
		}
		return true
	})
	return nil
}

// readSentences reads all files below root that are not tests.
func readSentences(root string) (matches []comparison, said []string, err error) {
	constants := map[string]string{}
	if err := walkSources(root, func(_, name string, src []byte) error { return constantTexts(name, src, constants) }, testRooms...); err != nil {
		return nil, nil, err
	}
	err = walkSources(root, func(dir, name string, src []byte) error {
		m, s, err := literals(dir, name, src, constants)
		matches = append(matches, m...)
		if !strings.HasPrefix(dir, "internal/diagnose") { // this package knows the messages of other programs
			said = append(said, s...)
		}
		return err
	}, testRooms...)
	return matches, said, err
}

// testRooms has the names of directories whose code only tests use.
var testRooms = []string{"suite", "testhosts", "bench"}

// walkSources calls f for each Go file below root that is not a test, with its directory relative to root. It leaves
// out directories whose names are in but.
func walkSources(root string, f func(dir, name string, src []byte) error, but ...string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != root && outsideModule(name, d.Name()) || slices.Contains(but, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(dir), name, src)
	})
}

// notOurs has messages of other programs that gangrun also uses, with the names of these programs, and texts that are
// no messages.
var notOurs = map[string]string{
	"error message":                            "a class of rules",
	"cut traceback":                            "a class of rules",
	"gangrun bridge: ":                         "the protocol of the bridge",
	"gangrun step: ":                           "the protocol of the step server",
	"fallen off the bus":                       "the NVIDIA driver",
	"gangrun was told to end the gang":         "journals of older versions, which only internal/journal reads",
	"gangrun was told to end the gang at once": "journals of older versions, which only internal/journal reads",
	"gpu is lost":                              "nvidia-smi",
	"not supported":                            "nvidia-smi",
	"requires reset":                           "nvidia-smi",
}

func TestLiterals(t *testing.T) {
	src := `package x
var a = fmt.Sprintf("the agent on %s is gone for good", h)
func f(s string) {
	if strings.Contains(s, "is gone") || s == "it was "+"here" || has("not compared") { }
	switch s { case "one case": }
	_ = Rule{Needles: []string{"a needle"}}
	_ = s == gone
	print(x.other)
}
`
	matches, said, err := literals("x", "x.go", []byte(src), map[string]string{"gone": "it is gone", "other": "not one"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range matches {
		texts = append(texts, m.text)
	}
	if want := []string{"it is gone", "is gone", "it was ", "here", "one case", "a needle"}; !slices.Equal(texts, want) {
		t.Errorf("compared: %q, want %q", texts, want)
	}
	if want := []string{"not one", "the agent on %s is gone for good", "not compared"}; !slices.Equal(said, want) {
		t.Errorf("said: %q, want %q", said, want)
	}
	for text, want := range map[string]bool{"is gone": true, " gone ": false, "is": false, "never said": false, " ": false} {
		if own, _ := ownSentence(text, said); own != want {
			t.Errorf("%q: %v", text, own)
		}
	}
}
