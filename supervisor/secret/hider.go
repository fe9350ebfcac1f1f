// Package secret removes the values of a job's secrets from what gangrun writes and shows.
package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	// shortSecret is the length in bytes of the shortest secret that is searched in output. A shorter value
	// would be found everywhere.
	shortSecret = 4
	// shortPart is the same limit for one line of a value with several lines, and for a value in another
	// encoding.
	shortPart = 8
)

// Hider returns a function that replaces the values of a job's secrets in a text. This is necessary because a
// rank may print these values in the very lines that show why it failed.
func Hider(spec job.Spec) func(string) string {
	var all []string
	for _, name := range spec.Secret {
		for _, value := range values(spec, name) {
			if value != job.Hidden {
				all = append(all, forms(value)...)
			}
		}
	}
	// Longer forms come first, because one form may be the beginning of another.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(all) {
		pairs = append(pairs, form, job.Hidden)
	}
	return strings.NewReplacer(pairs...).Replace
}

// Hiding returns a function that removes the job's secrets from the evidence and then calls diagnose. The secrets
// must be removed from the evidence, and not later from the cause: a cause quotes only the beginning of a long line,
// so the quotation may end in the middle of a secret, and the function recognises only whole secrets.
func Hiding(spec job.Spec, diagnose func(job.Evidence) job.Cause) func(job.Evidence) job.Cause {
	if len(spec.Secret) == 0 {
		return diagnose
	}
	clean := Hider(spec)
	return func(e job.Evidence) job.Cause {
		e.Lines = hideLines(e.Lines, clean)
		e.Outcome = hideOutcome(e.Outcome, clean)
		return diagnose(e)
	}
}

// forms returns the forms in which a value is searched: unchanged, line by line if it has several lines, and
// encoded for URLs, JSON and base64. It returns none for a value that is too short.
func forms(value string) (all []string) {
	plain := strings.TrimSpace(value)
	if len(plain) < shortSecret {
		return nil
	}
	all = append(all, value, plain)
	add := func(part string) {
		if len(part) >= shortPart {
			all = append(all, part)
		}
	}
	if lines := strings.FieldsFunc(plain, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, line := range lines {
			add(strings.TrimSpace(line))
		}
	}
	percent := strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
	add(url.QueryEscape(plain))
	add(percent)
	add(strings.ReplaceAll(percent, "%2F", "/")) // Python's urllib.parse.quote
	add(url.PathEscape(plain))
	for _, quoted := range []string{quoteJSON(plain), asciiJSON(plain), strconv.Quote(plain)} {
		add(quoted[1 : len(quoted)-1])
	}
	if quoted, err := json.Marshal(plain); err == nil {
		add(string(quoted[1 : len(quoted)-1]))
	}
	for _, text := range []string{value, plain} {
		for _, part := range base64Forms(text) {
			add(part)
		}
	}
	for _, form := range slices.Clone(all) { // logs have only valid UTF-8
		all = append(all, strings.ToValidUTF8(form, "\ufffd"), string([]rune(form)))
	}
	return all
}

// quoteJSON returns text as most programs write it in JSON. Unlike json.Marshal, it does not escape <, > and &.
func quoteJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// asciiJSON returns text as Python's json.dumps writes it, which is in ASCII only.
func asciiJSON(text string) string {
	var b strings.Builder
	for _, r := range quoteJSON(text) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// base64Forms returns the base64 encoding of text. It also returns the encodings of text inside of a longer
// text, for example as the password in "user:password". Of these, it returns only the part that does not depend
// on the other bytes.
func base64Forms(text string) (all []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, encoding.EncodeToString([]byte(text)))
		for before := range 3 {
			form := encoding.EncodeToString(append(make([]byte, before), text...))
			from, to := (before*8+5)/6, (before+len(text))*8/6 // characters of six bits each
			if from < to {
				all = append(all, form[from:to])
			}
		}
	}
	return all
}
