package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// The narrowest of a control group and those above it counts.
func TestMemoryLeft(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string // of the hierarchy
		first   bool
		want    int64
		limited bool
	}{
		"no limit":            {map[string]string{"a/memory.max": "max\n", "a/memory.current": "5\n"}, false, 0, false},
		"its own":             {map[string]string{"a/b/memory.max": "100\n", "a/b/memory.current": "30\n", "a/memory.max": "max\n", "a/memory.current": "40\n"}, false, 70, true},
		"one above":           {map[string]string{"a/b/memory.max": "100\n", "a/b/memory.current": "30\n", "a/memory.max": "90\n", "a/memory.current": "80\n"}, false, 10, true},
		"more than the limit": {map[string]string{"a/memory.max": "10\n", "a/memory.current": "80\n"}, false, 0, true},
		"version 1":           {map[string]string{"a/memory.limit_in_bytes": "100\n", "a/memory.usage_in_bytes": "1\n"}, true, 99, true},
	} {
		mount := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(mount, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, limited := Memory{filepath.Join(mount, "a/b"), mount, c.first}.Left()
		if have != c.want || limited != c.limited {
			t.Errorf("%s: %d, %v; want %d, %v", name, have, limited, c.want, c.limited)
		}
	}
}
