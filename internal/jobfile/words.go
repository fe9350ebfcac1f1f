// The package does not use mvdan.cc/sh to split words. In the syntax tree of mvdan.cc/sh, patterns, tildes and
// backslashes are plain text, which would have to be searched again. And its errors do not say what the user should
// type instead.

package jobfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// assignment matches a line that begins with the setting of a variable, as a shell sees it.
var assignment = regexp.MustCompile(`^[ \t]*([A-Za-z_][A-Za-z0-9_]*)=`)

const noShell = `put it in quotes, or write [sh, -c, "..."] where a shell is wanted`

// split splits a line into words as a POSIX shell would, at blanks. It removes single quotes, double quotes and
// backslashes. It expands nothing. So it returns a fault for everything that a shell would expand or act on.
func split(line string) ([]string, *fault) {
	if m := assignment.FindStringSubmatch(line); m != nil {
		return nil, faultf(fmt.Sprintf("set it with env: {%s: ...}", m[1]), "begins by setting the variable %q, as only a shell can", m[1])
	}
	var words []string
	var word []byte
	inside := false // a word has begun
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t':
			if inside {
				words, word, inside = append(words, string(word)), nil, false
			}
			continue
		case '\n':
			if strings.TrimSpace(line[i:]) != "" {
				return nil, faultf(`end the line with a backslash, or begin the value with >- instead of |`, "has a second line, which a shell would take for a second command")
			}
			line = line[:i] // this newline ends a block of YAML
			continue
		case '\\':
			i++
			if i == len(line) {
				return nil, faultf("write the backslash twice, or take it away", "ends in a backslash")
			}
			if line[i] == '\n' {
				continue // the line continues after this newline
			}
			word = append(word, line[i])
		case '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return nil, faultf("close it, or write \\' for the character itself", "has a quote ' that is never closed")
			}
			word = append(word, line[i+1:i+1+n]...)
			i += n + 1
		case '"':
			text, n, bad := doubleQuoted(line[i+1:])
			if bad != nil {
				return nil, bad
			}
			word = append(word, text...)
			i += n
		case '$', '`', '|', '&', ';', '<', '>', '(', ')', '*', '?':
			return nil, faultf(noShell, "has an unquoted %q, and no shell reads it", string(c))
		case '~', '#':
			if !inside {
				return nil, faultf(noShell, "has a word that begins with an unquoted %q, and no shell reads it", string(c))
			}
			word = append(word, c)
		default:
			word = append(word, c)
		}
		inside = true
	}
	if inside {
		words = append(words, string(word))
	}
	return words, nil
}

// doubleQuoted reads up to the closing quote. It returns the text inside the quotes. n is the number of bytes that it
// has read, including the quote.
func doubleQuoted(rest string) (text []byte, n int, bad *fault) {
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '"':
			return text, i + 1, nil
		case '$', '`':
			return nil, 0, faultf("put it in single quotes or a backslash before it, or write [sh, -c, \"...\"] where a shell is wanted",
				"has a %q in double quotes, and no shell reads it", string(c))
		case '\\':
			if i+1 < len(rest) && strings.IndexByte("$`\"\\\n", rest[i+1]) >= 0 {
				i++
				if rest[i] != '\n' {
					text = append(text, rest[i])
				}
				continue
			}
			text = append(text, c)
		default:
			text = append(text, c)
		}
	}
	return nil, 0, faultf(`close it, or write \" for the character itself`, `has a quote " that is never closed`)
}

// Split splits a line into words as a POSIX shell would. Split expands nothing: it returns an
// error for a character that a shell would expand or act on.
func Split(line string) ([]string, error) {
	words, bad := split(line)
	if bad != nil {
		return nil, errors.New(bad.text)
	}
	return words, nil
}
