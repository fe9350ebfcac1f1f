// Package browser shows a file in the user's web browser.
package browser

import (
	"path/filepath"
	"strings"
)

// Command returns the command line that shows the file at an absolute path, or nil if there is no browser or no
// display. The command line comes from $BROWSER, which has one command or several, separated by colons; Command uses
// the first command whose program exists. In a command, %s stands for the file; without %s, the path is added at the
// end. If there is no such command, Command uses the program with which the desktop opens files. No shell sees the
// command line. The function look tells whether a program exists, as exec.LookPath does.
func Command(path, system string, getenv func(string) string, look func(string) (string, error)) []string {
	for _, choice := range filepath.SplitList(getenv("BROWSER")) {
		words := strings.Fields(choice)
		if len(words) == 0 {
			continue
		}
		program, err := look(words[0])
		if err != nil {
			continue
		}
		return append([]string{program}, filled(words[1:], path)...)
	}
	opener := "xdg-open"
	switch {
	case system == "darwin":
		opener = "open"
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return nil
	}
	program, err := look(opener)
	if err != nil {
		return nil
	}
	return []string{program, path}
}

// filled puts the path in place of %s. If no word has %s, filled adds the path after all words.
func filled(words []string, path string) (out []string) {
	put := false
	for _, w := range words {
		put = put || strings.Contains(w, "%s")
		out = append(out, strings.ReplaceAll(w, "%s", path))
	}
	if !put {
		out = append(out, path)
	}
	return out
}
