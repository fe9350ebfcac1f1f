package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/suggest"
)

// unknown returns the fault for an unknown key. It suggests a key that the user may have meant.
func unknown(group, key string) *fault {
	known := keys(group)
	what, hint := fmt.Sprintf("unknown key %s", quote(key)), "the keys are: "+strings.Join(known, ", ")
	if group != "" {
		what, hint = what+" in "+group, fmt.Sprintf("the keys of %s are: %s", group, strings.Join(known, ", "))
	}
	for _, f := range table {
		parent, name, inside := strings.Cut(f.Name, ".")
		switch {
		case group == "" && f.Key && f.Short != "" && key == f.Short:
			return faultf("", "%s, did you mean %q?", what, f.Name)
		case group == "" && f.Key && inside && (key == name || key == f.Name) && !slices.Contains(known, key):
			return faultf("", "%s, did you mean %q inside of %q?", what, name, parent)
		case group != "" && f.Key && f.Kind != Group && !inside && key == f.Name:
			return faultf(fmt.Sprintf("write %s further left, beside %s", key, group), "%s, which is a key of the file itself", what)
		}
	}
	if near := suggest.DidYouMean(key, known); near != "" {
		return faultf("", "%s%s", what, near)
	}
	return faultf(hint, "%s", what)
}
