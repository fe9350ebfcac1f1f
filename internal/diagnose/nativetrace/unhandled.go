package nativetrace

import (
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// unhandledLine matches the line with which a runtime announces an uncaught exception.
	unhandledLine = textmatch.New(`(?i)(?:^|[\])>:] ?)(?:fatal error: |error: |php fatal error: +)?(?:uncaught|unhandled|raised|raises|died (?:of|with|from))(?: (?:exception|error|promise rejection))?(?:[.:] ?|: | )(.{3,400})$`)
	// unhandledClass matches an exception with its class before its message.
	unhandledClass = textmatch.New(`\b((?:\w+[.:]+)*[A-Z]\w*(?:Error|Exception|Failure|Fault))\b: (.+)$`)
	// unhandledAfter matches an exception with its class after its message.
	unhandledAfter = textmatch.New(`^(.+) [\[(]((?:\w+[.:]+)*[A-Z]\w*(?:Error|Exception|Defect|Failure))[\])]$`)
)

// unhandled reads the line with which the runtime of a language, such as Chapel, C#, D, Nim, Haskell, OCaml or PHP,
// announces an uncaught exception.
func unhandled(text []string, i int) *Death {
	m := unhandledLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	class, said := "", m[1]
	if a := unhandledAfter.FindStringSubmatch(said); a != nil {
		said, class = a[1], a[2]
	}
	for inner := unhandledClass.FindStringSubmatch(said); inner != nil; inner = unhandledClass.FindStringSubmatch(said) {
		class, said = inner[1], inner[2]
	}
	if class == "" {
		return nil
	}
	return native(pytrace.Base(class), said, i, i)
}
