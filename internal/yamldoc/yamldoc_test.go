package yamldoc

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":              "empty",
		"# nothing\n":   "empty",
		"a: 1\n":        "1:1",
		"\ufeffa: 1\n":  "1:1",
		"\n\n  a: 1\n":  "3:3",
		"a: 1\n---\n":   "2:1 a second document begins here, but a list is one",
		"a: *x\n":       `1:4 the alias "*x" has no anchor before it`,
		"a: [*x, 1]\n":  `1:5 the alias "*x" has no anchor before it`,
		"a:\n\tb: 1\n":  "2:1 a tab stands in the indentation",
		"a: [1\n":       "1:4 is not YAML: did not find expected ',' or ']'",
		"a: 1\nb: c: d": "2:5 is not YAML: mapping values are not allowed in this context",
		"\xff\xfea\x00": "1:1 is text in UTF-16, not in UTF-8",
		"a: 1\nb: \xff": "2:4 the byte 0xff here is no UTF-8",
		"a: 1\rb: \x01": "2:4 the control character U+0001 cannot stand in a list",
		"12345678901234567890123456789012345678901": "0:0 is larger than a list may be (40 bytes)",
	} {
		n, err := Parse([]byte(text), "a list", 40)
		got := "empty"
		switch {
		case err != nil:
			got = fmt.Sprintf("%d:%d %s", err.Line, err.Column, err.Text)
			if err.Hint == "" {
				t.Errorf("%q: no hint", text)
			}
		case n != nil:
			got = fmt.Sprintf("%d:%d", n.Line, n.Column)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestEntriesAndTags(t *testing.T) {
	n, err := Parse([]byte("&k a: 1\nb: !env x\n? [c]\n: d\n<<: {e: 1}\na: 2\n*k : 3\n~: 4\n\"\": !!str 5\n"), "a list", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	Entries(n, "a list", func(key string, k, v *yaml.Node) { got = append(got, fmt.Sprintf("%q %s", key, Kind(v, "text"))) },
		func(at *yaml.Node, e *Error) { got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Text)) })
	UnknownTags(n, func(n *yaml.Node) { got = append(got, fmt.Sprintf("%d tag %s", n.Line, n.Tag)) })
	want := []string{`"a" text`, `"b" text`, `3:3 a key wants a name, not a list`, `5:1 a list has no merge key <<`,
		`6:1 the key "a" stands here and on line 1`, `7:1 the key "a" stands here and on line 1`, `8:1 a key wants a name, not nothing`, `"" text`, "2 tag !env"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	UnknownTags(nil, func(*yaml.Node) { t.Error("nil has a tag") })
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: [1\n", "a: *x\n", "- a\n b: c", "a: \"", "\t", "%YAML 9.0\n---\n", "? "} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data, "a list", 1000)
		if err != nil && (err.Text == "" || err.Line < 0 || err.Line > len(Lines(data))+1 || err.Column < 0) {
			t.Errorf("%q: %+v", data, err)
		}
		if n != nil {
			UnknownTags(n, func(*yaml.Node) {})
		}
	})
}
