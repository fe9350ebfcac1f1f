package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"":          "''",
		"a":         "a",
		"/a/b-c_d":  "/a/b-c_d",
		"it's":      `'it'\''s'`,
		"a b":       "'a b'",
		"$x `y` \\": "'$x `y` \\'",
		"a\nb":      "'a\nb'",
		"~":         "'~'",
		"a;b&c":     "'a;b&c'",
	} {
		if got := Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("a shell reads %s as %q, %v", Quote(word), out, err)
		}
	}
}
