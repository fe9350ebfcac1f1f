package errorfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/recorded"
)

const callstack = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    f()\nValueError: no\n"

// TestRecorded checks that the file that @record writes becomes the lines of a traceback. Other content must be
// ignored.
func TestRecorded(t *testing.T) {
	written := time.Date(2026, 11, 21, 11, 0, 7, 250_000_000, time.UTC)
	at := func(second int, nano int) time.Time { return time.Date(2026, 11, 21, 11, 0, second, nano, time.UTC) }
	quoted := func(text string) string {
		out, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	trace := strings.Split(strings.TrimRight(callstack, "\n"), "\n")
	deep := "Traceback (most recent call last):\n" + strings.Repeat("  File \"deep.py\", line 1, in f\n    f()\n", 4000) + "RecursionError: too deep"
	for name, c := range map[string]struct {
		text string
		want []string
		when time.Time
	}{
		"of now":             {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":` + quoted(callstack) + `,"timestamp":"1795258807"}}}`, trace, written},
		"a second before":    {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":` + quoted(callstack) + `,"timestamp":"1795258806"}}}`, trace, at(6, 999_999_999)},
		"another clock":      {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":` + quoted(callstack) + `,"timestamp":1795258827}}}`, trace, at(27, 0)},
		"no time":            {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":` + quoted(callstack) + `}}}`, trace, written},
		"a time of nonsense": {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":` + quoted(callstack) + `,"timestamp":{"a":[]}}}}`, trace, written},
		"no traceback":       {`{"message":{"message":"ValueError: no\nand more","extraInfo":{"timestamp":"1795258807"}}}`, []string{"ValueError: no", "and more"}, written},
		"None as traceback":  {`{"message":{"message":"ValueError: no","extraInfo":{"py_callstack":"NoneType: None\n"}}}`, []string{"ValueError: no"}, written},
		"an older handler":   {`{"message":"ValueError: no","timestamp":1795258807}`, []string{"ValueError: no"}, written},
		"another language":   {`{"message":{"message":"W\u00e4rme \ud800","extraInfo":{}},"more":[1,2]}`, []string{"Wärme \uFFFD"}, written},
		"nothing said":       {`{"message":{"message":"","extraInfo":{"py_callstack":""}}}`, nil, written},
		"no message":         {`{}`, nil, written},
		"a number":           {`{"message":7}`, nil, written},
		"a list":             {`[{"message":"x"}]`, nil, written},
		"cut off":            {`{"message":{"message":"ValueError: no"`, nil, written},
		"empty":              {"", nil, written},
		"no JSON":            {"Traceback", nil, written},
		"too large":          {`{"message":"` + strings.Repeat("x", recorded.MaxBytes) + `"}`, nil, written},
	} {
		path := filepath.Join(t.TempDir(), "rank-0003.error.json")
		agenttest.WriteFile(t, path, c.text, 0o644)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range Read(path, "h1", 3) {
			if line.Source != job.SourceErrorFile || line.Rank != 3 || line.Host != "h1" || line.File != path || !line.Time.Equal(c.when) {
				t.Errorf("%s: the line %+v, want one of %s", name, line, c.when)
			}
			got = append(got, line.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "deep")
	agenttest.WriteFile(t, path, `{"message":{"message":"x","extraInfo":{"py_callstack":`+quoted(deep)+`}}}`, 0o644)
	lines := Read(path, "h1", 0)
	size := 0
	for _, line := range lines {
		size += len(line.Text) + 1
	}
	if n := len(lines); n < 500 || size > output.TailBytes || lines[0].Text != trace[0] || lines[n-1].Text != "RecursionError: too deep" {
		t.Errorf("of a long traceback there are %d lines of %d bytes", n, size)
	}
}

// TestRecordedElsewhere checks that only regular files are read, so that the agent does not wait for other kinds of
// files.
func TestRecordedElsewhere(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/good", `{"message":"ValueError: no"}`, 0o644)
	if err := os.Symlink(dir+"/good", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", dir, dir + "/link", dir + "/fifo", dir + "/none", "/dev/zero"} {
		if lines := Read(path, "h1", 0); lines != nil {
			t.Errorf("%q: %+v", path, lines)
		}
	}
	if lines := Read(dir+"/good", "h1", 0); len(lines) != 1 {
		t.Errorf("of the file itself: %+v", lines)
	}
}

// FuzzRecorded checks that the number of lines is limited, whatever a rank has written.
func FuzzRecorded(f *testing.F) {
	f.Add([]byte(`{"message":{"message":"a","extraInfo":{"py_callstack":"Traceback (most recent call last):\n  x\nE: a","timestamp":"1795258807"}}}`))
	f.Add([]byte(`{"message":"a","timestamp":1e999}`))
	f.Add([]byte(`{"message":"\n\n\n"}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, line := range Read(path, "h1", 0) {
			size += len(line.Text) + 1
		}
		if size > 2*output.TailLine+output.TailBytes {
			t.Errorf("%d bytes of %d", size, len(text))
		}
	})
}
