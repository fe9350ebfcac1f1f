package jobfile

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                 nil,
		"  \t ":                            nil,
		"python train.py --lr 0.1":         {"python", "train.py", "--lr", "0.1"},
		" a  b\t c ":                       {"a", "b", "c"},
		`a "b c" d`:                        {"a", "b c", "d"},
		`a 'b c'd"e f"`:                    {"a", "b cde f"},
		`a "" ''`:                          {"a", "", ""},
		`a b\ c \"\'`:                      {"a", "b c", `"'`},
		`a "b\n\"\\\$\` + "`" + `" '\n'`:   {"a", `b\n"\$` + "`", `\n`},
		`a '$x' "a*b|c" \$x \; \* \(`:      {"a", "$x", "a*b|c", "$x", ";", "*", "("},
		"a --x=~/y b#c":                    {"a", "--x=~/y", "b#c"},
		"a {{.Rank}} x=[1,2] {a,b} !":      {"a", "{{.Rank}}", "x=[1,2]", "{a,b}", "!"},
		"a \\\n  b\n":                      {"a", "b"},
		"a\\\nb":                           {"ab"},
		"a \"b\\\nc\nd\"\n\n":              {"a", "bc\nd"},
		"a A=b":                            {"a", "A=b"},
		`"A"=b a`:                          {"A=b", "a"},
		"größe 数据":                         {"größe", "数据"},
		"torchrun --nproc 2 -- t.py a:b%c": {"torchrun", "--nproc", "2", "--", "t.py", "a:b%c"},
	} {
		got, bad := split(line)
		if bad != nil {
			t.Errorf("split(%q): %s", line, bad.text)
		} else if !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"a $HOME":         `unquoted "$"`,
		"a `b`":           "unquoted \"`\"",
		"a | b":           `unquoted "|"`,
		"a > b":           `unquoted ">"`,
		"a < b":           `unquoted "<"`,
		"a 2>&1":          `unquoted ">"`,
		"a; b":            `unquoted ";"`,
		"a && b":          `unquoted "&"`,
		"a *.txt":         `unquoted "*"`,
		"a b?":            `unquoted "?"`,
		"f(x)":            `unquoted "("`,
		"a )":             `unquoted ")"`,
		`a "$x"`:          `"$" in double quotes`,
		"a \"`b`\"":       "\"`\" in double quotes",
		"~/bin/a":         `begins with an unquoted "~"`,
		"a # b":           `begins with an unquoted "#"`,
		"A=b c":           `setting the variable "A"`,
		"  TOKEN_1=abc c": `setting the variable "TOKEN_1"`,
		"a\nb":            "second line",
		`a "b`:            `quote " that is never closed`,
		`a "b\`:           `quote " that is never closed`,
		"a 'b":            "quote ' that is never closed",
		`a\`:              "ends in a backslash",
	} {
		words, bad := split(line)
		switch {
		case bad == nil:
			t.Errorf("split(%q) = %q, want it refused", line, words)
		case !strings.Contains(bad.text, want) || bad.hint == "":
			t.Errorf("split(%q): %q, hint %q, want %q and a hint", line, bad.text, bad.hint, want)
		case strings.Contains(bad.text+bad.hint, "abc"):
			t.Errorf("split(%q): %q shows a value that may be secret", line, bad.text)
		}
	}
}

// TestSplitAsShell compares split with the shell of this machine.
func TestSplitAsShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // an empty directory, so that [ab] matches no file
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{" ", "a", `'a b'`, `"c  d"`, `"\""`, `"\a\\"`, "\\ ", "\\'", "\\\n", "''", `""`, "'\n'", `'"'`, `"'"`, `\$`, "\t", "[ab]", "=~#"}), 0, 12)
		line := rapid.OneOf(
			rapid.StringOfN(rapid.SampledFrom([]rune(`ab "'\#~=[]{}$é`+"\t\n")), 0, 24, -1),
			rapid.Map(pieces, func(p []string) string { return strings.Join(p, "") }),
		).Draw(t, "line")
		words, bad := split(line)
		if bad != nil {
			return
		}
		list := strings.TrimRight(line, "\n")
		if rest := strings.TrimRight(list, `\`); list != line && (len(list)-len(rest))%2 == 1 {
			list = list[:len(list)-1] // otherwise, the next line would belong to the command
		}
		cmd := exec.Command(sh, "-c", "for w in "+list+"\ndo printf '%s.\\0' \"$w\"; done")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("sh refuses %q, which was split to %q: %v", line, words, err)
		}
		var shell []string
		for w := range bytes.SplitSeq(out, []byte{0}) {
			if len(w) > 0 {
				shell = append(shell, strings.TrimSuffix(string(w), "."))
			}
		}
		if !slices.Equal(words, shell) {
			t.Fatalf("split(%q) = %q, sh has %q", line, words, shell)
		}
	})
}

// FuzzSplit checks that quoted words are the same after split, and that the words of any text have only its bytes.
func FuzzSplit(f *testing.F) {
	f.Add("python train.py", "it's")
	f.Add(`a "b\"c" 'd'`, "")
	f.Add("a\\\nb ~ # $x", "x\ny")
	f.Fuzz(func(t *testing.T, line, word string) {
		if words, bad := split(line); bad == nil {
			total := 0
			for _, w := range words {
				total += len(w)
			}
			if total > len(line) {
				t.Errorf("split(%q) = %q has more in it than the line", line, words)
			}
		} else if bad.text == "" {
			t.Errorf("split(%q) is refused without a reason", line)
		}
		quoted := "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		words, bad := split("a " + quoted + " b")
		if bad != nil || !slices.Equal(words, []string{"a", word, "b"}) {
			t.Errorf("split(a %s b) = %q, %v", quoted, words, bad)
		}
	})
}
