package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxSize bounds a job file, in bytes, and what its aliases add up to.
const MaxSize = 1 << 20

// document reads data as one YAML document. It returns nil for an empty one.
func document(name string, data []byte) (*yaml.Node, *Error) {
	if len(data) > MaxSize {
		return nil, &Error{File: name, Text: fmt.Sprintf("is larger than a job file may be (%d bytes)", MaxSize)}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, &Error{File: name, Line: 1, Column: 1, Text: "is text in UTF-16, not in UTF-8", hint: "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := characters(name, data); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(name, data, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Error{File: name, Line: second.Line, Column: second.Column, Text: "a second document begins here, but a job file is one",
			hint: "keep one job a file, and no --- but at its top"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, data, err)
	}
	return first.Content[0], nil
}

// breaks are the characters that end a line of YAML; \r\n is one end.
const breaks = "\n\r\u0085\u2028\u2029"

// linesOf splits data into its lines, without empty ones at its end.
func linesOf(data []byte) []string {
	one := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	return strings.Split(strings.TrimRight(one.Replace(string(data)), "\n"), "\n")
}

// characters reports the first character that cannot stand in YAML.
func characters(name string, data []byte) *Error {
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return &Error{File: name, Line: line, Column: column, Text: fmt.Sprintf("the byte %#02x here is no UTF-8", data[i]),
				hint: "save the file as UTF-8"}
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			return &Error{File: name, Line: line, Column: column, Text: fmt.Sprintf("the control character %U cannot stand in a job file", r),
				hint: fmt.Sprintf(`in double quotes it is written "\u%04x"`, r)}
		}
		i += size
		column++
		if strings.ContainsRune(breaks, r) && !(r == '\r' && i < len(data) && data[i] == '\n') {
			line, column = line+1, 1
		}
	}
	return nil
}

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// oneLess are the words of the YAML library's parser, which counts its lines
// from 0; the scanner below it counts from 1.
var oneLess = []string{
	"did not find expected <document start>", "did not find expected <stream-start>", "did not find expected node content",
	"did not find expected '-' indicator", "did not find expected key", "did not find expected ',' or ']'",
	"did not find expected ',' or '}'", "found duplicate %YAML directive", "found incompatible YAML document",
	"found duplicate %TAG directive", "found undefined tag handle",
}

// hints say what mostly stands behind words of the YAML library.
var hints = map[string]string{
	"mapping values are not allowed in this context": `put the value in quotes if it holds ": ", or look at the indentation`,
	"did not find expected key":                      "look at the indentation and the quotes of this line and the one above",
	"did not find expected '-' indicator":            "look at the indentation and the quotes of this line and the one above",
	"did not find expected ',' or ']'":               "close the list with ], or put commas between its items",
	"did not find expected ',' or '}'":               "close the mapping with }, or put commas between its entries",
	"found character that cannot start any token":    "put the value in quotes if it begins with @, ` or %",
	"found unexpected end of stream":                 "close the quote that begins here",
	"could not find expected ':'":                    "a key is followed by a colon and a blank; look at the line above as well",
}

// syntaxError says what the YAML library said, and where.
func syntaxError(name string, data []byte, err error) *Error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line, lines := 1, linesOf(data)
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if slices.Contains(oneLess, text) {
			line++
		}
	}
	line = min(line, len(lines)) // the end of the file is told as a line of its own
	if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		use := slices.IndexFunc(lines, func(l string) bool {
			return strings.Contains(l, "*"+m[1]) && !strings.HasPrefix(strings.TrimSpace(l), "#")
		})
		return &Error{File: name, Line: max(use+1, 1), Text: fmt.Sprintf("the alias %q has no anchor before it", "*"+m[1]),
			hint: fmt.Sprintf("mark a value with &%s first, or put the * in quotes", m[1])}
	}
	for _, n := range []int{line, line - 1, line + 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		l := lines[n-1]
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 {
			return &Error{File: name, Line: n, Column: tab + 1, Text: "a tab stands in the indentation", hint: "YAML is indented with blanks only"}
		}
	}
	return &Error{File: name, Line: line, Text: "is not YAML: " + text, hint: hints[text]}
}
