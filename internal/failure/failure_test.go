package failure

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

type hinter string

func (h hinter) Error() string { return "hinter" }
func (h hinter) Hint() string  { return string(h) }

func TestCodeAndHint(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		name           string
		err            error
		code           int
		hint, fallback string
	}{
		{"plain", plain, CodeInternal, "", ""},
		{"usage", Usage("write 1", "%q is no number", "x"), CodeUsage, "write 1", ""},
		{"wrapped", fmt.Errorf("run: %w", Usage("write 1", "bad")), CodeUsage, "write 1", ""},
		{"joined", errors.Join(plain, Usage("write 1", "bad")), CodeUsage, "write 1", ""},
		{"hinted", Hinted("look there", "gone: %w", plain), CodeInternal, "look there", ""},
		{"code around a hint", &Error{Code: CodeMayPass, Err: Hinted("look there", "gone")}, CodeMayPass, "look there", ""},
		{"code inside of a hint", Hinted("look there", "%w", &Error{Code: CodeMayPass, Err: plain}), CodeMayPass, "look there", ""},
		{"outer code and hint win", &Error{Code: CodeMayPass, Err: Usage("b", "bad"), Hint: "a"}, CodeMayPass, "a", ""},
		{"method", fmt.Errorf("x: %w", hinter("ask")), CodeInternal, "ask", ""},
		{"error before method", fmt.Errorf("%w %w", hinter("ask"), Hinted("write", "bad")), CodeInternal, "write", ""},
		{"empty method", fmt.Errorf("%w %w", hinter(""), hinter("ask")), CodeInternal, "ask", ""},
		{"fallback", &Error{Code: CodeUsage, Err: plain, Fallback: "--help"}, CodeUsage, "", "--help"},
	} {
		if got := Code(c.err); got != c.code {
			t.Errorf("%s: code %d, want %d", c.name, got, c.code)
		}
		if got := Hint(c.err); got != c.hint {
			t.Errorf("%s: hint %q, want %q", c.name, got, c.hint)
		}
		if got := Fallback(c.err); got != c.fallback {
			t.Errorf("%s: fallback %q, want %q", c.name, got, c.fallback)
		}
	}
	if got := Code(nil); got != CodeInternal {
		t.Errorf("nil: code %d", got)
	}
}

// TestHintOfLimit checks that a hint about a limit of this machine replaces the hint of the error itself, but not the
// hint of the command.
func TestHintOfLimit(t *testing.T) {
	full := fmt.Errorf("%w %w", hinter("ask"), unix.ENFILE)
	if got := Hint(full); !strings.Contains(got, "fs.file-max") {
		t.Errorf("hint %q", got)
	}
	if got := Hint(&Error{Err: full, Hint: "type this"}); got != "type this" {
		t.Errorf("hint %q", got)
	}
}

func TestSplit(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	hinted := Hinted("h", "%w", errors.Join(a, b))
	for _, test := range []struct {
		err  error
		want []error
	}{
		{a, []error{a}},
		{errors.Join(a, errors.Join(b, c)), []error{a, b, c}},
		{&Error{Code: CodeUsage, Err: errors.Join(a, &Error{Err: errors.Join(b, c)})}, []error{a, b, c}},
		{errors.Join(hinted, c), []error{hinted, c}},
	} {
		if got := Split(test.err); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: %q", test.err, got)
		}
	}
}

func TestExit(t *testing.T) {
	var exit Exit
	if err := error(Exit(130)); !errors.As(err, &exit) || exit != 130 || err.Error() != "exit code 130" {
		t.Errorf("%v, %d", err, exit)
	}
}
