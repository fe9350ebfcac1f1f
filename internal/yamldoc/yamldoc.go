// Package yamldoc reads a file that must have exactly one YAML document. Its errors say where
// in the file a mistake is.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/text"
)

// Error is one thing that is wrong with a document.
type Error struct {
	Line, Column int // from 1; 0 if it is not known
	Text, Hint   string
}

// Error returns the text, without the position.
func (e *Error) Error() string { return e.Text }

// Parse parses data as one YAML document of at most limit bytes. what is the kind of file for
// the text of errors, for example "a job file". The node is nil if the document is empty.
func Parse(data []byte, what string, limit int) (*yaml.Node, *Error) {
	if len(data) > limit {
		return nil, &Error{Text: fmt.Sprintf("is larger than %s may be (%d bytes)", what, limit), Hint: "give the path of the right file"}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, &Error{Line: 1, Column: 1, Text: "is text in UTF-16, not in UTF-8", Hint: "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := characters(data, what); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(data, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Error{Line: second.Line, Column: second.Column, Text: "a second document begins here, but " + what + " is one",
			Hint: "keep one document in a file, and no --- but at its top"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(data, err)
	}
	return first.Content[0], nil
}

// breaks are the characters that end a line of YAML; \r\n is one end.
const breaks = "\n\r\u0085\u2028\u2029"

// Lines returns the lines of data without their ends, and without empty ones at its end.
func Lines(data []byte) []string {
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	return strings.Split(strings.TrimRight(ends.Replace(string(data)), "\n"), "\n")
}

// characters returns an error for the first character that cannot stand in YAML.
func characters(data []byte, what string) *Error {
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return &Error{Line: line, Column: column, Text: fmt.Sprintf("the byte %#02x here is no UTF-8", data[i]), Hint: "save the file as UTF-8"}
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			return &Error{Line: line, Column: column, Text: fmt.Sprintf("the control character %U cannot stand in %s", r, what),
				Hint: fmt.Sprintf(`in double quotes it is written "\u%04x"`, r)}
		}
		i += size
		column++
		if strings.ContainsRune(breaks, r) && !(r == '\r' && i < len(data) && data[i] == '\n') {
			line, column = line+1, 1
		}
	}
	return nil
}

// hints have the usual cause of an error of the YAML library.
var hints = map[string]string{
	"mapping values are not allowed in this context": `put the value in quotes if it holds ": ", or look at the indentation`,
	"did not find expected key":                      "look at the indentation and the quotes of this line and the one above",
	"did not find expected '-' indicator":            "look at the indentation and the quotes of this line and the one above",
	"did not find expected ',' or ']'":               "close the list with ], or put commas between its items",
	"did not find expected ',' or '}'":               "close the mapping with }, or put commas between its entries",
	"found character that cannot start any token":    "put the value in quotes if it begins with @, ` or %",
	"found unexpected end of stream":                 "close the quote that begins here",
	"could not find expected ':'":                    "write a colon and a blank after a key; look at the line above as well",
}

const otherHint = "look at the indentation, the quotes and the brackets of this line and the one above"

// syntaxError returns what the YAML library has found, and where.
func syntaxError(data []byte, err error) *Error {
	var found *yaml.LoadError
	if !errors.As(err, &found) {
		return &Error{Line: 1, Text: "is not YAML: " + err.Error(), Hint: otherHint}
	}
	lines, at := Lines(data), found.Mark
	if at.Line > len(lines) { // at the end of the file, inside of what is not closed
		at = found.ContextMark
	}
	if at.Line < 1 || at.Line > len(lines) {
		at = yaml.Mark{Line: len(lines)}
	}
	line := lines[at.Line-1]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if tab := strings.IndexByte(indent, '\t'); tab >= 0 {
		return &Error{Line: at.Line, Column: tab + 1, Text: "a tab stands in the indentation", Hint: "YAML is indented with blanks only"}
	}
	if found.Stage == yaml.ComposerStage {
		if alias, ok := aliasAt(line, at.Column); ok {
			return &Error{Line: at.Line, Column: at.Column, Text: fmt.Sprintf("the alias %s has no anchor before it", text.Quote("*"+alias)),
				Hint: fmt.Sprintf("mark a value with &%s first, or put the * in quotes", text.Clip(alias, 60))}
		}
	}
	hint := hints[found.Message]
	if hint == "" {
		hint = otherHint
	}
	said := "is not YAML: " + found.Message
	if begin := found.ContextMark.Line; begin > 0 && begin < at.Line {
		said += fmt.Sprintf(" (%s that begins on line %d)", found.ContextMsg, begin)
	}
	return &Error{Line: at.Line, Column: at.Column, Text: said, Hint: hint}
}

// aliasAt returns the name of the alias at a column of a line.
func aliasAt(line string, column int) (name string, ok bool) {
	runes := []rune(line)
	if column < 1 || column > len(runes) || runes[column-1] != '*' {
		return "", false
	}
	name, _, _ = strings.Cut(string(runes[column:]), " ")
	return strings.TrimRight(name, ",]}"), true
}

// Follow returns the node that an alias stands for. It returns other nodes unchanged.
func Follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Null reports whether a node is empty or null.
func Null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Kind returns what a node is, in words: "a mapping", "a list" or "nothing". For a scalar, it
// returns the argument scalar.
func Kind(n *yaml.Node, scalar string) string {
	switch n = Follow(n); {
	case Null(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.ScalarNode:
		return scalar
	}
	return "a list"
}

// knownTags are the tags that may be written before a value of each kind; ! alone means no
// type. Others ask for types of another program.
var knownTags = map[yaml.Kind][]string{
	yaml.ScalarNode:   {"!", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary"},
	yaml.MappingNode:  {"!", "!!map"},
	yaml.SequenceNode: {"!", "!!seq"},
}

// UnknownTags calls visit for every node of a document that has an explicit tag which YAML itself
// does not define. It does not follow aliases.
func UnknownTags(n *yaml.Node, visit func(*yaml.Node)) {
	if n == nil {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags[n.Kind], n.ShortTag()) {
		visit(n)
	}
	for _, inner := range n.Content {
		UnknownTags(inner, visit)
	}
}

// Entries calls visit for every entry of a mapping, with the key of the entry. It calls reject for
// a key that is a merge key, is not text, or occurs twice. what is the kind of file for the text of
// errors.
func Entries(n *yaml.Node, what string, visit func(key string, k, v *yaml.Node), reject func(at *yaml.Node, e *Error)) {
	lines := make(map[string]int) // of the keys
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := Follow(k)
		fail := func(hint, format string, args ...any) {
			reject(k, &Error{Line: k.Line, Column: k.Column, Text: fmt.Sprintf(format, args...), Hint: hint})
		}
		switch line := lines[key.Value]; {
		case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
			fail("write the entries out, or let an alias stand for a whole value", "%s has no merge key <<", what)
		case key.Kind != yaml.ScalarNode || Null(key):
			fail("write a name before the colon", "a key wants a name, not %s", Kind(key, ""))
		case line > 0:
			fail("keep one of the two", "the key %s stands here and on line %d", text.Quote(key.Value), line)
		default:
			lines[key.Value] = k.Line
			visit(key.Value, k, v)
		}
	}
}
