package main_test

import (
	"regexp"
	"strings"
)

// alike is how many bytes a and b begin with alike.
func alike(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// varying is what differs between one run and the next.
var varying = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`/[^\s"]*/ctl/home`), "~"},
	{regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{4}`), "RUN"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "TOKEN"},
	{regexp.MustCompile(`SHA256:[\w+/=]+`), "SHA256:..."},
	{regexp.MustCompile(`known_hosts:\d+`), "known_hosts:2"},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d{5}\b`), "ADDRESS"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d  `), ""},
}

var (
	// summaryBegins is the first line of what gangrun run says at the end, and
	// summaryTells are those that tell of a fault.
	summaryBegins = regexp.MustCompile(`^run {3,}`)
	summaryTells  = regexp.MustCompile(`^(run|  cause|  ranks|hint|exit code| +hint:) `)
)

// seen is what the user sees of what has happened, without what differs between
// runs.
func (r *farRun) seen() (lines []string) {
	summary := false
	for _, line := range strings.Split(r.errs.String(), "\n") {
		text, ok := strings.CutPrefix(line, "gangrun: ")
		summary = summary || summaryBegins.MatchString(text)
		if !ok || !summary && strings.HasPrefix(text, "run ") || summary && !summaryTells.MatchString(text) {
			continue
		}
		lines = append(lines, plain(text))
	}
	return lines
}

// plain is a line of gangrun's without what varies.
func plain(text string) string {
	for _, v := range varying {
		text = v.of.ReplaceAllString(text, v.by)
	}
	return strings.TrimRight(text, " ")
}
