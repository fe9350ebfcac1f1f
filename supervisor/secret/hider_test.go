package secret

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestHider(t *testing.T) {
	const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\r\n  AQEFAASCBKcwggSjAgEA  \nab=\n-----END KEY-----\n"
	for _, c := range []struct{ name, value, text, want string }{
		{"whole", "hunter2", "password hunter2!", "password ***!"},
		{"short", "abc", "abcdef", "abcdef"},
		{"short within blanks", " ab \n", "ab  ab \n", "ab  ab \n"},
		{"with an end of line", "hunter2\n", "password hunter2!", "password ***!"},
		{"all lines", pem, "x" + pem + "y", "x***y"},
		{"one line", pem, "bad line AQEFAASCBKcwggSjAgEA of it", "bad line *** of it"},
		{"another line, as Python quotes it", pem, `'MIIEvQIBADANBgkqhkiG9w0B\r\n  A'`, `'***\r\n  A'`},
		{"a short line", pem, "ab= stays", "ab= stays"},
		{"URL", "p@ss/w rd", "http://u:p%40ss%2Fw%20rd@x?p=p%40ss%2Fw+rd", "http://u:***@x?p=***"},
		{"URL, as Python quotes it", "p@ss/w+rd", "http://u:p%40ss/w%2Brd@x", "http://u:***@x"},
		{"JSON of other programs", "p\"ss&word", `{"a": "p\"ss&word"}`, `{"a": "***"}`},
		{"JSON, as Python writes it", "p\u00e4ss\u2026w\U0001f600rd", `{"a": "p\u00e4ss\u2026w\ud83d\ude00rd"}`, `{"a": "***"}`},
		{"JSON", "p\"ss\\word", `{"a": "p\"ss\\word"}`, `{"a": "***"}`},
		{"base64", "hunter2-and-more", "Bearer " + base64.StdEncoding.EncodeToString([]byte("hunter2-and-more")), "Bearer ***=="},
		{"base64 behind a user's name", "hunter2-and-more!", "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:hunter2-and-more!")), "Basic YWRhOm***"},
		{"not UTF-8, byte by byte", "pass\xff\xfeword", "pass\ufffd\ufffdword", "***"},
		{"not UTF-8, at once", "pass\xff\xfeword", "pass\ufffdword", "***"},
		{"not UTF-8", "pass\xffword", "pass\ufffdword", "***"},
		{"what is hidden already", job.Hidden, "***", "***"},
		{"empty", "", "a text", "a text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			clean := Hider(job.Spec{Env: map[string]string{"K": c.value}, Secret: []string{"K"}})
			if got := clean(c.text); got != c.want {
				t.Errorf("%q became %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// TestHiding: a cause quotes only the beginning of a long line. The rest of a secret there could not be
// recognised.
func TestHiding(t *testing.T) {
	value := strings.Repeat("secret-", 100)
	lines := []job.Line{{Text: "ERROR: " + value}}
	spec := job.Spec{Env: map[string]string{"K": value}, Secret: []string{"K"}}
	cause := Hiding(spec, func(e job.Evidence) job.Cause {
		return job.Cause{Text: e.Lines[0].Text[:10], Hint: e.Outcome.Lines[0].Text}
	})(job.Evidence{Lines: lines, Outcome: job.Outcome{Lines: lines}})
	if cause.Text != "ERROR: ***" || cause.Hint != "ERROR: ***" {
		t.Errorf("%+v", cause)
	}
	if lines[0].Text != "ERROR: "+value {
		t.Errorf("the lines themselves became %q", lines[0].Text)
	}
}

// TestHiderTakesTheLonger: if one value is the beginning of another, nothing of the longer one remains.
func TestHiderTakesTheLonger(t *testing.T) {
	spec := job.Spec{Env: map[string]string{"A": "token", "B": "token-and-more"}, Trial: job.Trial{Env: map[string]string{"A": "token-and-more-of-it"}}}
	for _, spec.Secret = range [][]string{{"A", "B"}, {"B", "A"}} {
		if got := Hider(spec)("token token-and-more token-and-more-of-it"); got != "*** *** ***" {
			t.Errorf("got %q", got)
		}
	}
}

func TestSecretFindings(t *testing.T) {
	spec := job.Spec{Env: map[string]string{"A": "hunter2", "PIN": "12", "EMPTY": ""}, Trial: job.Trial{Env: map[string]string{"T": "hunter2"}},
		Secret: []string{"A", "NOSUCH", "T", "PIN", "NOSUCH", "EMPTY"}}
	found := Findings(spec)
	if len(found) != 2 || !strings.Contains(found[0].Text, `"NOSUCH" is set neither`) || !strings.Contains(found[1].Text, `"PIN" is shorter`) {
		t.Errorf("%+v", found)
	}
	for _, f := range found {
		if f.Severity != job.SeverityWarning || f.Hint == "" {
			t.Errorf("%+v, want a warning with a hint", f)
		}
	}
}
