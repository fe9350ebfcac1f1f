package supervisor

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	// shortSecret is the length in bytes below which a secret value is not looked
	// for in what ranks print: it would be found in everything.
	shortSecret = 4
	// shortPart is the same for one line of a value that has several, and for a value
	// in another encoding.
	shortPart = 8
)

// hider returns what takes the values of a job's secrets out of a text. A rank
// may print them in the very lines that prove why it failed.
func hider(spec job.Spec) func(string) string {
	var all []string
	for _, name := range spec.Secret {
		for _, value := range values(spec, name) {
			if value != job.Hidden {
				all = append(all, forms(value)...)
			}
		}
	}
	// One may be the beginning of another: then the longer one is meant.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(all) {
		pairs = append(pairs, form, job.Hidden)
	}
	return strings.NewReplacer(pairs...).Replace
}

// forms returns in what forms a value is looked for: as it is, line by line where it
// has several lines, and as a URL, JSON or base64 has it. There are none of a value
// that is too short.
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
	add(url.QueryEscape(plain))
	add(strings.ReplaceAll(url.QueryEscape(plain), "+", "%20"))
	add(url.PathEscape(plain))
	if quoted, err := json.Marshal(plain); err == nil {
		add(strings.Trim(string(quoted), `"`))
	}
	for _, text := range []string{value, plain} {
		add(base64.RawStdEncoding.EncodeToString([]byte(text)))
		add(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	for _, form := range slices.Clone(all) { // as a line of a log has it
		all = append(all, strings.ToValidUTF8(form, "\ufffd"))
	}
	return all
}
