package probe

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// node is an XML element.
type node struct {
	name, id string
	chars    strings.Builder
	children []*node
}

func (n *node) text() string { return strings.TrimSpace(n.chars.String()) }

// find returns the first element at the path of names, or nil.
func (n *node) find(path string) *node {
	name, rest, more := strings.Cut(path, "/")
	for _, child := range n.children {
		if child.name == name {
			if more {
				return child.find(rest)
			}
			return child
		}
	}
	return nil
}

// maxDepth is the maximum nesting of elements. nvidia-smi has six levels.
const maxDepth = 32

// readTree reads the element <nvidia_smi_log> in text. There may be warnings before and after it.
func readTree(text string) (*node, error) {
	const begin = "<nvidia_smi_log"
	before, _, found := strings.Cut(text, begin)
	if !found {
		return nil, &QueryError{1, 1, fmt.Sprintf("%s where <nvidia_smi_log> should begin", quoted(text))}
	}
	firstLine := strings.Count(before, "\n")
	firstColumn := len(before) - (strings.LastIndexByte(before, '\n') + 1)
	d := xml.NewDecoder(strings.NewReader(text[len(before):]))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	fail := func(text string) error {
		line, column := d.InputPos()
		if line == 1 {
			column += firstColumn
		}
		return &QueryError{line + firstLine, column, text}
	}
	var open []*node
	for {
		token, err := d.Token()
		if err != nil {
			inside := "<nvidia_smi_log>"
			if len(open) > 0 {
				inside = "<" + open[len(open)-1].name + ">"
			}
			var syntax *xml.SyntaxError
			if errors.Is(err, io.EOF) || errors.As(err, &syntax) && syntax.Msg == "unexpected EOF" {
				return nil, fail("the text ends inside " + inside)
			}
			if syntax != nil {
				return nil, fail(syntax.Msg + " inside " + inside)
			}
			return nil, fail(err.Error())
		}
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local}
			for _, a := range token.Attr {
				if a.Name.Local == "id" {
					n.id = a.Value
				}
			}
			if len(open) == maxDepth {
				return nil, fail(fmt.Sprintf("<%s> is nested deeper than %d levels", n.name, maxDepth))
			}
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, n)
			}
			open = append(open, n)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].chars.Write(token)
			}
		case xml.EndElement:
			n := open[len(open)-1]
			if open = open[:len(open)-1]; len(open) == 0 {
				return n, nil
			}
		}
	}
}

// quoted quotes the first line of text that is not empty, and shortens it.
func quoted(text string) string {
	const most = 120
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > most {
				line = line[:most] + "..."
			}
			return fmt.Sprintf("%q", strings.ToValidUTF8(line, "?"))
		}
	}
	return "nothing"
}
