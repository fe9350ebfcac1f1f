package hostview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// dotWords splits graphviz's language into words and quoted strings, as its
// grammar has them.
func dotWords(text string) ([]string, error) {
	var words []string
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			j := i + 1
			for ; j < len(text) && text[j] != '"'; j++ {
				if text[j] == '\n' {
					return nil, fmt.Errorf("a string goes over the end of a line: %q", text[i:j])
				}
				if text[j] == '\\' {
					j++
				}
			}
			if j >= len(text) {
				return nil, fmt.Errorf("a string does not end: %q", text[i:])
			}
			words = append(words, text[i:j+1])
			i = j + 1
		case c == ' ' || c == '\n':
			i++
		case strings.ContainsRune("{}[]=,;", rune(c)):
			words = append(words, string(c))
			i++
		default:
			j := i
			for j < len(text) && !strings.ContainsRune("{}[]=,; \n\"", rune(text[j])) {
				j++
			}
			words = append(words, text[i:j])
			i = j
		}
	}
	return words, nil
}

func TestTopoDot(t *testing.T) {
	for name, l := range awkwardLists() {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := Dot(&b, l); err != nil {
				t.Fatal(err)
			}
			words, err := dotWords(b.String())
			if err != nil {
				t.Fatal(err)
			}
			depth, ends, nodes := 0, 0, map[string]bool{}
			for i, w := range words {
				switch w {
				case "{", "[":
					depth++
					if w == "[" && words[i-1] != "node" && (i < 2 || words[i-2] != "--") {
						nodes[words[i-1]] = true
					}
				case "}", "]":
					depth--
					if depth == 0 {
						ends++
					}
				case "--":
					for _, end := range []string{words[i-1], words[i+1]} {
						if !nodes[end] && !slices.Contains(words[i:], end) {
							t.Errorf("an edge to %s, which is no node", end)
						}
					}
				}
			}
			if depth != 0 || ends != 1 || words[0] != "graph" {
				t.Errorf("braces do not match in\n%s", b.String())
			}
			gpus := 0
			for _, h := range l.Hosts {
				gpus += len(h.Devices)
			}
			want := gpus + len(l.Hosts[0].NICs)
			if len(l.Hosts) > 1 {
				want = 2 * len(l.Hosts) // each at a switch of its own
			}
			if len(nodes) != want {
				t.Errorf("nodes %v, want %d", nodes, want)
			}
		})
	}
}
