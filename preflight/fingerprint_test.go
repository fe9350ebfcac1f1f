package preflight

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func TestChanges(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	file := func(content string, age time.Duration) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(content), ModTime: then.Add(-age)}
	}
	dir := func(age time.Duration) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeDir | 0o700, ModTime: then.Add(-age)}
	}
	before := fstest.MapFS{"a.pt": file("aaa", 0), "step-1": dir(0), "step-1/model": file("m", 0), "step-1/optimizer": file("o", 0)}
	for _, tt := range []struct {
		name   string
		change func(fstest.MapFS)
		want   []string
	}{
		{"nothing", func(fstest.MapFS) {}, nil},
		{"a directory's time says nothing", func(f fstest.MapFS) { f["step-1"] = dir(time.Hour) }, nil},
		{"a file grows", func(f fstest.MapFS) { f["a.pt"] = file("aaaa", 0) }, []string{"a.pt"}},
		{"a file is written anew", func(f fstest.MapFS) { f["a.pt"] = file("bbb", time.Second) }, []string{"a.pt"}},
		{"a file is new in an old directory", func(f fstest.MapFS) { f["step-1/x"] = file("", 0) }, []string{"step-1/x"}},
		{"a file is gone", func(f fstest.MapFS) { delete(f, "step-1/model") }, []string{"step-1/model"}},
		{"a directory is new", func(f fstest.MapFS) {
			f["step-2"], f["step-2/sub"], f["step-2/sub/model"] = dir(0), dir(0), file("m", 0)
		}, []string{"step-2"}},
		{"a directory is gone", func(f fstest.MapFS) {
			delete(f, "step-1")
			delete(f, "step-1/model")
			delete(f, "step-1/optimizer")
		}, []string{"step-1"}},
		{"a file becomes a directory", func(f fstest.MapFS) { f["a.pt"] = dir(0) }, []string{"a.pt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := make(fstest.MapFS)
			for name, file := range before {
				after[name] = file
			}
			tt.change(after)
			if have := printsOf(before).changes(printsOf(after)); !slices.Equal(have, tt.want) {
				t.Errorf("changes %q, want %q", have, tt.want)
			}
		})
	}
}

func TestFingerprintOfNothing(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if have := fingerprint(dir); len(have) > 0 {
			t.Errorf("fingerprint(%q) = %v", dir, have)
		}
	}
}
