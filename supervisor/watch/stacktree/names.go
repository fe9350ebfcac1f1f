package stacktree

import "strings"

// short returns the name of a C++ function without the arguments, the template arguments, the result type, and
// the suffixes that compilers add. It returns other names unchanged.
func short(function string) string {
	name, _, _ := strings.Cut(function, " [clone ")
	if !strings.ContainsAny(name, "(:") || strings.Contains(name, "operator") { // operators have such characters themselves
		return name
	}
	var out strings.Builder
	depth := 0
	for i, c := range name {
		opens := c == '<' || c == '(' && !strings.HasPrefix(name[i:], "(anonymous namespace)")
		switch closes := c == '>' || c == ')' && !strings.HasSuffix(name[:i+1], "(anonymous namespace)"); {
		case opens:
			depth++
		case closes:
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	name = strings.TrimSpace(strings.TrimSuffix(out.String(), " const"))
	if i := strings.LastIndexByte(strings.ReplaceAll(name, "anonymous namespace", "anonymous_namespace"), ' '); i >= 0 {
		name = name[i+1:]
	}
	if depth != 0 || name == "" {
		return function
	}
	return name
}
