package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/mpiexec"
)

// prose has the words that follow "gangrun" in sentences and are no commands. It also has a command that only a
// process of an SSH session runs.
var prose = strings.Fields(`
	needs
	adds and apart as asks begins believes binds bridge by can cannot changes checks chooses compares computes connects corrects could did does ended ends
	expands finds found from gave gets gives had has hides holds images in inside is itself keeps knows leaves less lets looks makes may mounts must names neither never not
	of on once or prints puts reaches reads refuses rejects remembers removes repeats reports runs says sees sends sets shows skips speaks started starts step stopped supports takes tells that then there therefore to
	touches tries uses waits warns was wasted wastes will with works would writes yet
`)

// foreign has flags of other programs that occur in gangrun's messages.
var foreign = strings.Fields(`
	--format --generate-bash-completion --gpu-reset --gres --no-kill --signal --ipc --mca --mem --overlap --overwrite --pid --shm-size --subresource -batch -ex
`)

// namedCommand matches a command line of gangrun in a text: the word after "gangrun", and the rest up to the end of
// the clause.
var namedCommand = regexp.MustCompile(`\bgangrun ([a-z][a-z-]*)([^;:,()"'` + "`" + `\n\x00]*)`)

// namedFlag matches a flag in a text.
var namedFlag = regexp.MustCompile(`(?:^|[\s(` + "`" + `"'])(--?[a-z][a-z-]*)`)

// jobCommand matches the command line of a job after "--".
var jobCommand = regexp.MustCompile(` -- .*`)

// codeSpan matches a span or a block of code in a page of the documentation.
var codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")

// commandFlags returns the flags of every command, with their dashes. The key "" has the flags of all commands.
func commandFlags() map[string][]string {
	flags := map[string][]string{}
	for _, c := range app(io.Discard, io.Discard).Commands {
		flags[c.Name] = []string{}
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				name = dashed(name)
				flags[c.Name] = append(flags[c.Name], name)
				flags[""] = append(flags[""], name)
			}
		}
	}
	for _, name := range mpiexec.OptionNames() {
		flags["mpiexec"] = append(flags["mpiexec"], "-"+name, "--"+name)
	}
	return flags
}

// TestNamedCommands checks that every command and flag exists that gangrun's messages, hints and help, or the
// documentation name.
func TestNamedCommands(t *testing.T) {
	flags, used := commandFlags(), map[string]bool{}
	exists := func(command, flag string) bool {
		used[flag] = true
		return slices.Contains(flags[command], flag) || slices.Contains(foreign, flag)
	}
	for at, text := range texts(t, filepath.Join("..", "..")) {
		for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
			command, rest := m[1], m[2]
			if flags[command] == nil {
				if !slices.Contains(prose, command) {
					t.Errorf("%s: there is no command %q in %q (a verb that follows the name gangrun is added to prose)", at, command, m[0])
				}
				continue
			}
			for _, f := range namedFlag.FindAllStringSubmatch(jobCommand.ReplaceAllString(rest, ""), -1) {
				if !exists(command, f[1]) {
					t.Errorf("%s: gangrun %s has no flag %s: %s", at, command, f[1], m[0])
				}
			}
		}
		if strings.HasSuffix(at, ".md") || !strings.Contains(text, " ") || strings.Contains(text, "(?") {
			continue // pages name flags of other programs, and a regular expression or a single word is no message
		}
		for _, f := range namedFlag.FindAllStringSubmatch(jobCommand.ReplaceAllString(text, ""), -1) {
			if strings.HasPrefix(f[1], "--") && !exists("", f[1]) {
				t.Errorf("%s: there is no flag %s: %.80q", at, f[1], text)
			}
		}
	}
	for _, flag := range foreign {
		if !used[flag] {
			t.Errorf("no message names %s: take it off the list", flag)
		}
	}
}

// texts returns the texts in which gangrun may name commands, by the places at which they stand. They are the string
// literals of the source, and the code in the documentation.
func texts(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root && entry.Name() != ".." || entry.Name() == "testdata" || entry.Name() == "testhosts" || entry.Name() == "bench"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			for i, span := range codeSpan.FindAllString(string(text), -1) {
				all[fmt.Sprintf("code %d of %s", i+1, path)] = span
			}
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, whole := literal(e)
			if strings.Trim(text, "\x00") != "" {
				all[set.Position(e.Pos()).String()] = text
			}
			return !whole
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// literal returns the text of a string literal, or of a sum with string literals. In the text, a zero byte stands for
// each summand that is no string literal. If whole is true, the parts of e need not be looked at.
func literal(e ast.Expr) (text string, whole bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
		}
		return text, true
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, _ := literal(e.X)
		right, _ := literal(e.Y)
		if left == "" && right == "" {
			return "", false
		}
		return left + right, true
	}
	return "\x00", false
}
