package inventory

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// document parses text as one YAML document; nil is an empty one.
func document(source string, text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := dec.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(source, text, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, one(source, min(second.Line, bytes.Count(text, []byte("\n"))+1), faultf("keep one inventory a file", "a second document begins here"))
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(source, text, err)
	}
	return follow(first.Content[0]), nil
}

// syntax says what the YAML library said, and where.
func syntax(source string, text []byte, err error) error {
	said, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine.FindStringSubmatch(said); m != nil {
		line, _ = strconv.Atoi(m[1])
		said = said[len(m[0]):]
		if strings.HasPrefix(said, "did not find expected") {
			line++ // its parser counts lines from 0, its scanner from 1
		}
	}
	all := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	line = min(line, len(all)) // the end of the file is told as a line of its own
	hint := "look at the indentation, the quotes and the brackets of this line and the one above"
	for _, n := range []int{line, line - 1} {
		if n < 1 {
			continue
		}
		l := all[n-1]
		if strings.Contains(l[:len(l)-len(strings.TrimLeft(l, " \t"))], "\t") {
			return one(source, n, faultf("YAML is indented with blanks only", "a tab stands in the indentation"))
		}
	}
	return one(source, line, faultf(hint, "is not YAML: %s", short(said)))
}
