// Package diagnose finds the cause of a failed attempt in what its ranks
// printed, how they ended and what their hosts recorded. It is pure: the same
// Evidence gives the same Cause. The knowledge is in Rules, one file a
// category; docs/add-a-rule.md tells how to add one.
package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
)

// Rule says how one kind of failure shows itself and what it means.
//
// A sign of failure is an uncaught exception, a line, the way in which a rank
// ended, or a record of a host's kernel. A rule fits a sign when all fit that
// it has of Classes, Needles, Match, Unless and Context; rules with Signals,
// Codes or Statuses fit ends of ranks only, Kernel rules records only. Of
// several that fit, the most specific one holds: a class with a text, a text, a
// class, a weak text, a generic class, the class of a program's own error
// message; and of equals the first in the list.
type Rule struct {
	Category  job.Category
	Signature string
	// Meaning is for the documentation: half a sentence.
	Meaning string
	// Hint tells what to do next. It and Text may hold ${name|what else} for the
	// named groups of Match, and ${title}, ${signal}, ${code}, ${core}.
	Hint string
	// Text replaces what is said of the sign: the exception with its place, the
	// line, the end.
	Text string
	// Retry is what the Cause calls for where that is not what its category does.
	Retry job.Action
	// Confidence is that of Cause.
	Confidence float64

	// Classes are exception classes without their module, or "*" for any. A rule
	// without Classes fits exceptions and plain lines.
	Classes []string
	// Needles are texts of at least 4 bytes, in lower case, one of which must
	// occur in the text in any case. Every rule for plain lines has them.
	Needles []string
	// Match must match the text, Find may. Of both the groups artefact, rank,
	// host and pid, where they matched, go into the Cause.
	Match, Find *pattern
	// Unless must not match the text.
	Unless *pattern
	// Context must match one of the traceback's frames, "function: source line".
	Context *pattern

	Signals  []int
	Codes    []int
	Statuses []job.ExitStatus
	Kernel   bool

	// Cascade marks what is mostly the echo of another rank's failure.
	Cascade bool
	// Peer marks what may be a failure of its own, and yields to another rank that
	// ended for a reason of its own at about the same time.
	Peer bool
	// Weak marks a line that appears in healthy output too: it counts near the
	// end of a stream only.
	Weak bool
	// Generic marks a sign that says little: any other one beside it is better.
	Generic bool
	// Continued marks a line whose sentence ends on the next line.
	Continued bool
	// Mute marks an end, or a line about one, that says only that the program ended
	// itself: the error message that it printed tells why.
	Mute bool
}

// written holds every rule in the order of the files. It and what is made of it
// come about when they are first asked for, as patterns do.
var written = sync.OnceValue(func() []*Rule {
	var all []*Rule
	for _, list := range [][]Rule{
		missingLibrary, cudaVersion, cudaInit, gpuHardware, gpuOOM, cpuOOM, cudaFailure, modelDiverged,
		collectiveTimeout, mpiRuntime, mpiError, checkpointError, diskFull, storageError, portInUse, outputError,
		permissionError, networkError, launchError, preempted, hostLost, importError, syntaxError, incorrectInputs,
		invalidMemoryAccess, assertion, coreDump, semanticError, killed, traceback, unknown,
	} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
})

// rules holds every rule, the most specific first.
var rules = sync.OnceValue(func() []*Rule {
	all := slices.Clone(written())
	slices.SortStableFunc(all, func(a, b *Rule) int { return cmp.Compare(a.vagueness(), b.vagueness()) })
	return all
})

// Rules lists every rule, the most specific first.
func Rules() []Rule {
	all := make([]Rule, len(rules()))
	for i, r := range rules() {
		all[i] = *r
	}
	return all
}

func (r *Rule) vagueness() int {
	text := len(r.Needles) > 0 || r.Match != nil || r.Context != nil
	switch {
	case len(r.Classes) > 0 && r.Classes[0] == message: // what fits the words of a message otherwise is more specific
		switch {
		case r.Cascade:
			return 5
		case text:
			return 6
		}
		return 7
	case len(r.Classes) > 0 && r.Classes[0] != "*" && text:
		return 0
	case text && !r.Weak:
		return 1
	case text:
		return 3
	case r.Generic:
		return 4
	default:
		return 2
	}
}

// ending reports whether the rule is about how a rank ended.
func (r *Rule) ending() bool { return len(r.Signals)+len(r.Codes)+len(r.Statuses) > 0 }

// fits reports whether the rule fits a sign whose text holds one of its
// needles.
func (r *Rule) fits(s *sign) bool {
	if r.ending() || r.Kernel != s.kernel || r.Weak && s.class == message {
		return false
	}
	any := len(r.Classes) > 0 && r.Classes[0] == "*" && s.class != "" && s.class != message
	if len(r.Classes) > 0 && !any && !slices.Contains(r.Classes, s.class) {
		return false
	}
	if r.Match != nil && !r.Match.MatchString(s.text) || r.Unless != nil && r.Unless.MatchString(s.text) {
		return false
	}
	return r.Context == nil || r.Context.MatchString(s.context)
}

// byClass holds the rules that have Classes but no Needles, by class.
var byClass = sync.OnceValue(func() map[string][]int {
	m := map[string][]int{}
	for i, r := range rules() {
		if len(r.Needles) == 0 {
			for _, c := range r.Classes {
				m[c] = append(m[c], i)
			}
		}
	}
	return m
})

// match returns the rule that holds for a sign, or nil.
func match(s *sign) *Rule {
	found := needles().find(s.text, nil)
	if s.class != "" {
		found = append(append(found, byClass()[s.class]...), byClass()["*"]...)
	}
	slices.Sort(found)
	for _, i := range found {
		if r := rules()[i]; r.fits(s) {
			return r
		}
	}
	return nil
}

// index finds which of many texts occur in a line, in one pass over it: four
// bytes at a time are looked up, and only where they begin a text is it
// compared.
type index struct {
	maybe [1 << 10]uint64 // one bit for each hash of four bytes
	begin map[uint32][]needle
}

type needle struct {
	text string
	rule int
}

var needles = sync.OnceValue(func() *index {
	x := &index{begin: map[uint32][]needle{}}
	for i, r := range rules() {
		for _, text := range r.Needles {
			x.add(text, i)
		}
	}
	return x
})

func (x *index) add(text string, rule int) {
	key := uint32(0)
	for i := range 4 {
		key = key<<8 | uint32(text[i])
	}
	h := spread(key)
	x.maybe[h>>6] |= 1 << (h & 63)
	x.begin[key] = append(x.begin[key], needle{text, rule})
}

func spread(key uint32) uint32 { return key * 2654435761 >> 16 }

var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = strings.ToLower(string(rune(i)))[0]
		if i >= 0x80 {
			t[i] = byte(i)
		}
	}
	return t
}()

// find appends the rules, each once, of which a needle occurs in text.
func (x *index) find(text string, found []int) []int {
	key := uint32(0)
	for i := 0; i < len(text); i++ {
		key = key<<8 | uint32(lower[text[i]])
		if i < 3 {
			continue
		}
		h := spread(key)
		if x.maybe[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, n := range x.begin[key] {
			if hasPrefixFold(text[i-3:], n.text) && !slices.Contains(found, n.rule) {
				found = append(found, n.rule)
			}
		}
	}
	return found
}

// hasPrefixFold reports whether text begins with prefix, which is in lower
// case, in any case.
func hasPrefixFold(text, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower[text[i]] != prefix[i] {
			return false
		}
	}
	return true
}

// expand fills a template with names; "${name|else}" has words for a name that
// is not there.
func expand(template string, names map[string]string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(template, "${")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		name, otherwise, _ := strings.Cut(name, "|")
		b.WriteString(cmp.Or(names[name], otherwise))
		template = after
	}
}

// groups returns the named groups of Match and Find that are not empty.
func (r *Rule) groups(text string) map[string]string {
	names := map[string]string{}
	for _, x := range []*pattern{r.Match, r.Find} {
		if x == nil {
			continue
		}
		m := x.FindStringSubmatch(text)
		for i, name := range x.SubexpNames() {
			if m != nil && name != "" && m[i] != "" {
				names[name] = m[i]
			}
		}
	}
	return names
}
