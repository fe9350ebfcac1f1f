package exact_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/exact"
)

type kind string

type part struct {
	Kind  kind
	Words []string
	Vars  map[string]string
	Next  *part
	Any   any
	Data  []byte
	Time  time.Time
}

func thereAndBack(t *testing.T, v part) []byte {
	t.Helper()
	data, err := exact.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back part
	if err := exact.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, v) {
		t.Errorf("%#v came back as %#v from %s", v, back, data)
	}
	return data
}

func TestThereAndBack(t *testing.T) {
	odd := "caf\xe9 \x00 \xff\xfe\x00ff \ufffd \\ufffd"
	v := part{
		Kind: kind(odd), Words: []string{"plain", "", odd}, Vars: map[string]string{odd: odd, "K": "v"}, Any: odd,
		Next: &part{Kind: "plain", Vars: map[string]string{}}, Data: []byte("\xff"), Time: time.Date(2026, 11, 22, 1, 2, 3, 4, time.UTC),
	}
	thereAndBack(t, v)
	if v.Words[2] != odd || v.Next.Kind != "plain" {
		t.Error("Marshal has changed what it was given")
	}
	thereAndBack(t, part{})
}

// TestPlainStaysPlain checks that strings that encoding/json preserves are written as encoding/json writes them.
func TestPlainStaysPlain(t *testing.T) {
	v := part{Words: []string{"naïve 日本 \ufffd <&> \\u0000 \\ufffd", "\n\t\x7f"}}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := thereAndBack(t, v); string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := thereAndBack(t, part{Words: []string{"caf\xe9"}}); !strings.Contains(string(got), `"caf\u0000e9"`) {
		t.Errorf("got %s, want the escaped byte in it", got)
	}
}

// TestOlderFiles checks that a NUL byte in a file of an older version of gangrun is preserved.
func TestOlderFiles(t *testing.T) {
	var got []string
	if err := exact.Unmarshal([]byte(`["a\u0000", "a\u0000zz", "\u00004"]`), &got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a\x00", "a\x00zz", "\x004"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := exact.Unmarshal([]byte(`{`), &got); err == nil {
		t.Error("what is no JSON was read")
	}
}

func FuzzExact(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00", "\x00ff", "\xff", "\xe6\x97", "\ufffd", `\ufffd`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data, err := exact.Marshal([]string{s})
		if err != nil {
			t.Fatal(err)
		}
		var back []string
		if err := exact.Unmarshal(data, &back); err != nil || len(back) != 1 || back[0] != s {
			t.Errorf("%q came back as %q from %s, %v", s, back, data, err)
		}
	})
}
