package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var syntaxError = []rule.Rule{{
	Category: job.SyntaxError, Signature: "python-syntax", Confidence: 1,
	Meaning: "Python cannot parse the program, perhaps because this version of Python is too old",
	Hint:    "correct the line named; where the syntax is newer than the interpreter, choose another python",
	Classes: []string{"SyntaxError", "IndentationError", "TabError"},
}, {
	Category: job.SyntaxError, Signature: "shell-syntax", Confidence: 0.95,
	Meaning: "the shell cannot parse the job's script",
	Hint:    "correct the script's line named; bash -n checks it without running it",
	Needles: []string{"syntax error near unexpected token", "syntax error: unexpected", "syntax error: end of file unexpected", "unexpected eof while looking for", "syntax error: \"", "syntax error in expression (error token is", "unmatched ", "missing endif", "unexpected operator"},
	Match:   textmatch.New(`(?i)syntax error near unexpected token|syntax error: (?:unexpected|end of file unexpected|")|unexpected EOF while looking for|syntax error in expression|: line \d+: .*unmatched |^Unmatched ['"\x60({]|then: then/endif not found`),
}, {
	Category: job.SyntaxError, Signature: "julia-syntax", Confidence: 0.95,
	Meaning: "Julia cannot parse the program",
	Hint:    "correct the line named",
	Classes: []string{"ParseError", "ErrorException", rule.Message},
	Needles: []string{"loaderror: syntax: ", "error: syntax: ", "# error @"},
}, {
	Category: job.SyntaxError, Signature: "script-syntax", Confidence: 0.9,
	Meaning: "the interpreter of R, MATLAB, Octave, Perl, Lua, Ruby, Java or awk cannot parse the program",
	Hint:    "correct the line named",
	Needles: []string{": unexpected '", ": unexpected symbol", ": unexpected end of input", ": unexpected string constant", ": unexpected numeric constant", "error: unexpected ", "parse error:", "invalid expression. check for", "invalid expression.", "syntax error at ", "had compilation errors", "awk: syntax error", "awk: line ", "awk: cmd. line", "error: incomplete string", "unexpected end of input", "syntax error", "error: file: ", "expected near"},
	Match:   textmatch.New(`\.[Rr]:\d+:\d+: unexpected |^Error: unexpected (?:symbol|string constant|numeric constant|'|end of input|input|assignment|INCOMPLETE_STRING)|^Error in parse\(|^parse error:$|^parse error near line \d+|Invalid expression\. (?:Check for|When calling)|^Error: File: .* Line: \d+ Column: \d+|^syntax error at \S+ line \d+|had compilation errors\.$|^[gm]?awk: (?:syntax error|line \d+: syntax error|cmd\. line:\d+: .*\^ (?:syntax error|parse error))|^lua\S*: .*(?:expected|unexpected symbol) near|: unexpected end of input$|: +syntax error, unexpected |^[gmn]?awk: .*: syntax error$`),
	Unless:  textmatch.New(`(?i)warning|json|jq:`),
}, {
	Category: job.SyntaxError, Signature: "compile-error", Confidence: 0.85,
	Meaning: "a compiler refuses the program that the job builds",
	Hint:    "correct the line named, or choose the compiler and the standard for which it was written",
	Needles: []string{": error: ", "): error: ", "): error #", "error: syntax error in ", "error: unclassifiable statement"},
	Match:   textmatch.New(`^[\w./+-]+\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|m|f|f90|f95|F|F90)(?::\d+(?::\d+)?: error: |\(\d+\): error(?: #\d+)?: )|^Error: (?:Syntax error in|Unclassifiable statement)`),
	Unless:  textmatch.New(`(?i)No such file|undefined reference|cannot find|static assertion`),
}}
