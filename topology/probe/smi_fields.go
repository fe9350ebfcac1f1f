package probe

import (
	"fmt"
	"strconv"
	"strings"
)

// fields reads the fields of a node, and notes in errs what cannot be read.
type fields struct {
	node *node
	errs *map[string]string
}

func (f fields) failed(field, why string) {
	if *f.errs == nil {
		*f.errs = map[string]string{}
	}
	if _, noted := (*f.errs)[field]; !noted {
		(*f.errs)[field] = why
	}
}

// text returns the text of the first of paths that exists. If none exists, it notes that.
func (f fields) text(field string, paths ...string) string {
	for _, path := range paths {
		n := f.node.find(path)
		if n == nil {
			continue
		}
		text := n.text()
		switch plain := strings.Trim(text, "[]"); {
		case plain == "N/A":
			f.failed(field, "not available")
		case strings.EqualFold(plain, "not supported"):
			f.failed(field, "not supported")
		case isLost(plain), isFault(plain), strings.EqualFold(plain, "insufficient permissions"):
			f.failed(field, plain)
		default:
			return text
		}
		return ""
	}
	f.failed(field, "nvidia-smi does not report it")
	return ""
}

// number reads a count that may have a unit.
func (f fields) number(field, path string) int64 {
	text := f.text(field, path)
	if text == "" {
		return 0
	}
	number, _, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		f.failed(field, fmt.Sprintf("%q is no number", text))
		return 0
	}
	return n
}

// bytes reads an amount of memory.
func (f fields) bytes(field, path string) int64 {
	text := f.text(field, path)
	if text == "" {
		return 0
	}
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	shift, known := map[string]int{"B": 0, "KiB": 10, "MiB": 20, "MB": 20, "GiB": 30}[unit]
	if err != nil || !known || n < 0 || n > 1<<62>>shift {
		f.failed(field, fmt.Sprintf("%q is no amount of memory", text))
		return 0
	}
	return n << shift
}

func (f fields) yes(path string) bool {
	n := f.node.find(path)
	return n != nil && n.text() == "Yes"
}

func (f fields) instance(path string) *int {
	n := f.node.find(path)
	if n == nil {
		return nil
	}
	i, err := strconv.Atoi(n.text())
	if err != nil || i < 0 {
		return nil
	}
	return &i
}
