package layers

// tooLarge has the code that is larger than its limit, with its last known size.
var tooLarge = map[string]int{
	// This is data: each field of a rule has a line of its own.
	"package internal/diagnose/rules": 3361,
	// This is data: the fields of everything in a journal or a report. All other rooms import it.
	"package internal/job": 3200,
}
