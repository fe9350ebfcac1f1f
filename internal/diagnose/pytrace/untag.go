package pytrace

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// longestTag is how many bytes the tag before each line of a trace may have.
const longestTag = 120

// maxTagged is how many lines of a trace are read, with its first line.
const maxTagged = 200

// Untag returns, without their tag, line i and the lines just after it that begin with the same tag. The tag is the
// text of line i before the match of p. The numbers in it may differ from line to line. head is the length of the tag
// in line i. It is 0 if line i has no tag, or if the next line does not begin with it.
func Untag(text []string, i int, p *textmatch.Pattern) (inner []string, head int) {
	at := p.FindStringIndex(text[i])
	if at == nil || at[0] == 0 || at[0] > longestTag {
		return nil, 0
	}
	tag := text[i][:at[0]]
	if last := tag[len(tag)-1]; last != ' ' && last != ':' && last != ']' && last != '|' && last != '\t' {
		return nil, 0
	}
	form := shape(tag)
	inner = append(inner, text[i][at[0]:])
	for _, t := range text[i+1 : min(len(text), i+maxTagged)] {
		rest, ok := cut(t, tag, form)
		if !ok {
			break
		}
		inner = append(inner, rest)
	}
	if len(inner) < 2 {
		return nil, 0
	}
	return inner, at[0]
}

// cut removes a tag from a line. It reports whether the line had the tag, or a tag of the same form.
func cut(t, tag, form string) (string, bool) {
	if rest, ok := strings.CutPrefix(t, tag); ok {
		return rest, true
	}
	if t == strings.TrimRight(tag, " ") {
		return "", true
	}
	if len(t) < len(tag) || shape(t[:len(tag)]) != form {
		return "", false
	}
	return t[len(tag):], true
}

// shape returns a text with each of its digits replaced by "0".
func shape(t string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, t)
}

// shifted reads an exception without a header if all of its lines are indented further than Python indents them.
func shifted(text []string, i int) (Exception, bool) {
	pad := text[i][:len(text[i])-len(strings.TrimLeft(text[i], " "))]
	if !ErrorLine(text[i][len(pad):]) {
		return Exception{}, false
	}
	from := i
	for from > 0 && from > i-60 && strings.HasPrefix(text[from-1], pad+"  ") {
		from--
	}
	inner := make([]string, 0, i-from+1)
	for _, t := range text[from : i+1] {
		inner = append(inner, t[len(pad):])
	}
	e := Headless(inner, i-from)
	e.From, e.At, e.To = e.From+from, e.At+from, e.To+from
	return e, !e.Bare
}
