// Package environ works on environments in the kernel's form, which is a list of NAME=VALUE.
package environ

import "strings"

// Lookup returns the value of a variable in an environment. If the variable is there several
// times, the last value counts.
func Lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// Overlay returns base with the variables of all layers added. A variable of a layer replaces a variable of the same
// name in base and in earlier layers.
func Overlay(base []string, layers ...[]string) []string {
	at := make(map[string]int, len(base))
	out := make([]string, 0, len(base))
	for _, layer := range append([][]string{base}, layers...) {
		for _, entry := range layer {
			name, _, ok := strings.Cut(entry, "=")
			if !ok || name == "" {
				continue
			}
			if i, ok := at[name]; ok {
				out[i] = entry
			} else {
				at[name] = len(out)
				out = append(out, entry)
			}
		}
	}
	return out
}

// Without returns a copy of an environment without one variable.
func Without(env []string, name string) []string {
	var out []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
		}
	}
	return out
}
