package rules

import "github.com/gangrun/gangrun/internal/job"

var syntaxError = []Rule{{
	Category: job.SyntaxError, Signature: "python-syntax", Confidence: 1,
	Meaning: "Python cannot parse the program, perhaps because this version of Python is too old",
	Hint:    "correct the line named; where the syntax is newer than the interpreter, choose another python",
	Classes: []string{"SyntaxError", "IndentationError", "TabError"},
}, {
	Category: job.SyntaxError, Signature: "shell-syntax", Confidence: 0.95,
	Meaning: "the shell cannot parse the job's script",
	Hint:    "correct the script's line named; bash -n checks it without running it",
	Needles: []string{"syntax error near unexpected token", "syntax error: unexpected", "syntax error: end of file unexpected", "unexpected eof while looking for", "syntax error: \""},
}, {
	Category: job.SyntaxError, Signature: "julia-syntax", Confidence: 0.95,
	Meaning: "Julia cannot parse the program",
	Hint:    "correct the line named",
	Classes: []string{"ParseError", "ErrorException"},
	Needles: []string{"syntax: ", "# error @"},
}}
