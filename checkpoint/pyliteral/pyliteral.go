// Package pyliteral reads Python literals.
package pyliteral

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Parse reads a Python literal of the kinds that numpy's headers have: strings, whole
// numbers, True, False, None, tuples and lists (both []any) and dicts with strings as keys.
func Parse(text string) (any, error) {
	p := literal{text: text}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.text != "" {
		return nil, fmt.Errorf("%q follows its end", flaw.Short(p.text))
	}
	return v, nil
}

type literal struct{ text string }

func (p *literal) space() { p.text = strings.TrimLeft(p.text, " \t\r\n\x00") }

// take skips white space, and then c if c is next. It reports whether c was next.
func (p *literal) take(c byte) bool {
	p.space()
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *literal) value(depth int) (any, error) {
	if depth > 32 {
		return nil, fmt.Errorf("it is nested too deeply")
	}
	p.space()
	if p.text == "" {
		return nil, fmt.Errorf("it ends too early")
	}
	switch c := p.text[0]; c {
	case '(':
		p.text = p.text[1:]
		return p.sequence(')', depth)
	case '[':
		p.text = p.text[1:]
		return p.sequence(']', depth)
	case '{':
		p.text = p.text[1:]
		return p.dict(depth)
	case '\'', '"':
		return p.quoted(c)
	}
	end := strings.IndexAny(p.text, " \t\r\n,)]}:")
	if end < 0 {
		end = len(p.text)
	}
	word := p.text[:end]
	p.text = p.text[end:]
	switch word {
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "None":
		return nil, nil
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(word, "L"), 10, 64) // Python 2 wrote 3L
	if err != nil {
		return nil, fmt.Errorf("%q is no literal", flaw.Short(word))
	}
	return n, nil
}

func (p *literal) sequence(end byte, depth int) (any, error) {
	all := []any{}
	comma := false
	for !p.take(end) {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if comma = p.take(','); comma {
			continue
		}
		if !p.take(end) {
			return nil, fmt.Errorf("%q stands where a comma should", flaw.Short(p.text))
		}
		break
	}
	if end == ')' && len(all) == 1 && !comma {
		return all[0], nil // parentheses, not a tuple
	}
	return all, nil
}

func (p *literal) dict(depth int) (any, error) {
	all := map[string]any{}
	for !p.take('}') {
		k, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok || !p.take(':') {
			return nil, fmt.Errorf("%v is no key", k)
		}
		if all[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		if !p.take(',') {
			if !p.take('}') {
				return nil, fmt.Errorf("%q stands where a comma should", flaw.Short(p.text))
			}
			break
		}
	}
	return all, nil
}

// quoted reads a string. It does not decode escapes, because only names have any.
func (p *literal) quoted(quote byte) (any, error) {
	for i := 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case quote:
			s := p.text[1:i]
			p.text = p.text[i+1:]
			return s, nil
		}
	}
	return nil, fmt.Errorf("a string has no end")
}
