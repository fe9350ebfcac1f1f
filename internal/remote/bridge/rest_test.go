package bridge

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRest checks that the controller gets the output that an agent has left of a gang, from the requested offsets on.
// The files must be removed only after the controller has confirmed that.
func TestRest(t *testing.T) {
	type piece struct {
		text  string
		whole bool
	}
	for name, c := range map[string]struct {
		gang, ask, word string
		want            map[string]piece
		err             string
		gone            string // the topmost path that is removed; "" if nothing is
		only            bool   // whether the agent has no other gang
	}{
		"all is taken": {
			ask: `{"a.out": 0, "a.err": 3}`, word: "a", gone: ".",
			want: map[string]piece{"a.out": {"whole text", true}, "a.err": {" off", false}},
		},
		"some is taken":           {ask: `{"a.out": 6}`, word: "t", gone: "logs/r/1/a.out", want: map[string]piece{"a.out": {"text", true}}},
		"and was all":             {ask: `{"a.out": 6, "a.err": 7}`, word: "t", gone: ".", only: true, want: map[string]piece{"a.out": {"text", true}, "a.err": {"", false}}},
		"not all of it is taken":  {ask: `{"a.out": 6}`, word: "t", gone: "logs/r/1/a.out", only: true, want: map[string]piece{"a.out": {"text", true}}},
		"no word":                 {ask: `{"a.out": 10}`, want: map[string]piece{"a.out": {"", true}}},
		"another word":            {ask: `{"a.out": 10}`, word: "x", want: map[string]piece{"a.out": {"", true}}},
		"not there, or too short": {ask: `{"b.out": 0, "a.err": 8, "a.out": -1, "dir": 0}`, word: "t", want: map[string]piece{}},
		"another gang":            {gang: "r/2", ask: `{"a.out": 0}`, word: "t", want: map[string]piece{}},
		"another gang, and all":   {gang: "r/2", ask: `{"a.out": 0}`, word: "a", gone: ".", want: map[string]piece{}},
		"outside":                 {ask: `{"../2/a.out": 0}`, err: "path escapes"},
		"through a link":          {ask: `{"link": 0}`, err: "path escapes"},
		"no gang":                 {gang: "../..", ask: `{"a.out": 0}`, err: `"../.." is not the name of a gang`},
		"no request":              {ask: `{"a.out":`, err: "read the request: unexpected end of JSON input"},
		"a long request":          {ask: strings.Repeat(" ", maxRequest), err: "read the request: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "agent")
			spool := filepath.Join(dir, SpoolName, "r", "1")
			for path, text := range map[string]string{"a.out": "whole text", "a.err": "cut off", "dir/x": ""} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(spool, path)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(spool, path), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Chmod(filepath.Join(spool, "a.out"), Whole), os.Symlink("/etc/passwd", filepath.Join(spool, "link"))); err != nil {
				t.Fatal(err)
			}
			if other := filepath.Join(dir, SpoolName, "r", "3", "a.out"); !c.only {
				if err := errors.Join(os.Mkdir(filepath.Dir(other), 0o700), os.WriteFile(other, []byte("other"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			gang := c.gang
			if gang == "" {
				gang = "r/1"
			}
			var out bytes.Buffer
			err := rest(dir, gang, strings.NewReader(c.ask+"\n"+c.word), &out)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			got, end := map[string]piece{}, c.err != ""
			for archive := tar.NewReader(&out); c.err == ""; {
				header, err := archive.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if end {
					t.Errorf("%q comes after the end", header.Name)
				}
				if end = header.Name == End; end {
					continue
				}
				text, err := io.ReadAll(archive)
				if err != nil {
					t.Fatal(err)
				}
				got[header.Name] = piece{string(text), header.FileInfo().Mode().Perm() == Whole}
			}
			if !end {
				t.Error("there is no end")
			}
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s: got %+v, want %+v", name, got[name], want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for at := "logs/r/1/a.out"; ; at = filepath.Dir(at) {
				_, err := os.Stat(filepath.Join(dir, at))
				if want := c.gone != "" && strings.HasPrefix(at, strings.TrimPrefix(c.gone, ".")); os.IsNotExist(err) != want {
					t.Errorf("%s: %v, want it gone: %t", at, err, want)
				}
				if at == "." {
					break
				}
			}
		})
	}
}

// FuzzRest checks that only the files of the gang are handed out, whatever the request is. Nothing may be removed
// without the confirmation of the controller.
func FuzzRest(f *testing.F) {
	for _, ask := range []string{`{"a.out": 0}`, `{"a.out": 3, "../1/a.out": 0}`, `{"a.out": 1e3}`, `[]`, ``, `{"": -1}`, `null`} {
		f.Add("r/1", ask)
	}
	f.Add("../..", `{"a.out": 0}`)
	f.Add(".", `{"r/1/a.out": 0}`)
	dir := f.TempDir()
	path := filepath.Join(dir, SpoolName, "r", "1", "a.out")
	secret := filepath.Join(dir, "lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text"), 0o644), os.WriteFile(secret, []byte("other"), 0o600)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, gang, ask string) {
		line, err := json.Marshal(json.RawMessage(ask)) // no confirmation follows
		if err != nil {
			line = []byte(strings.NewReplacer("\n", " ").Replace(ask))
		}
		var out bytes.Buffer
		_ = rest(dir, gang, bytes.NewReader(append(line, '\n')), &out)
		if strings.Contains(out.String(), "other") {
			t.Errorf("%q of %q hands out another file", ask, gang)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	})
}
