package nativetrace

import (
	"fmt"
	"path"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// perlEnd matches the message with which a Perl program dies.
var perlEnd = textmatch.New(`^(.{3,300}?) at (\S+) line (\d+)(?:, <\w*> (?:line|chunk) \d+)?\.$`)

// perlWarns matches the beginning of a warning of Perl, after which the program goes on.
var perlWarns = textmatch.New(`^(?:Use of |Argument "|Odd number of|Useless use|Scalar value|Name "|Possible |Deep recursion|Subroutine \w+ redefined|Wide character|isn't numeric|Smartmatch|given is|readline\(\) on|print\(\) on|Statement unlikely|Found =)`)

// perl reads the message with which a Perl program dies, and the trace after it.
func perl(text []string, i int) *Death {
	m := perlEnd.FindStringSubmatch(text[i])
	if m == nil || perlWarns.MatchString(text[i]) {
		return nil
	}
	to := i + 1
	for to < len(text) && (strings.HasPrefix(text[to], "\t") && strings.Contains(text[to], " called at ") || strings.HasPrefix(text[to], "BEGIN failed--") || strings.HasPrefix(text[to], "Compilation failed in require")) {
		to++
	}
	return &Death{Class: "perl die", Title: m[1], Text: text[i], Where: fmt.Sprintf("%s line %s", path.Base(m[2]), m[3]), From: i, At: i, To: to}
}
