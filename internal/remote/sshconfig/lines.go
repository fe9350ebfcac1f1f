package sshconfig

import (
	"fmt"
	"strings"
)

// splitKeyword splits a line into its keyword, in lower case, and the rest. A comment and an
// empty line have no keyword.
func splitKeyword(line string) (keyword, rest string) {
	line = strings.Trim(line, " \t\r\f\v")
	if line == "" || line[0] == '#' {
		return "", ""
	}
	end := strings.IndexAny(line, " \t=")
	if end < 0 {
		return strings.ToLower(strings.Trim(line, `"`)), ""
	}
	rest = strings.TrimLeft(line[end:], " \t")
	if after, ok := strings.CutPrefix(rest, "="); ok {
		rest = strings.TrimLeft(after, " \t")
	}
	return strings.ToLower(strings.Trim(line[:end], `"`)), rest
}

// splitArgs splits the rest of a line into words as OpenSSH does, which differs from a shell. Single and double quotes
// keep blanks in a word. A backslash escapes a quote, a backslash and, outside quotes, a blank. A # at the start of a
// word begins a comment.
func splitArgs(s string) ([]string, error) {
	var words []string
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		if s[i] == '#' {
			break
		}
		var word []byte
		quoted := byte(0)
	word:
		for ; i < len(s); i++ {
			c := s[i]
			switch {
			case c == '\\' && i+1 < len(s) && (strings.IndexByte(`'"\`, s[i+1]) >= 0 || quoted == 0 && s[i+1] == ' '):
				i++
				word = append(word, s[i])
			case quoted == 0 && (c == ' ' || c == '\t'):
				break word
			case quoted == 0 && (c == '\'' || c == '"'):
				quoted = c
			case quoted != 0 && c == quoted:
				quoted = 0
			default:
				word = append(word, c)
			}
		}
		if quoted != 0 {
			return nil, fmt.Errorf("no closing quote in %q", s)
		}
		words = append(words, string(word))
	}
	return words, nil
}
