package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryLeft checks that the group with the least memory left counts, among a control group and its ancestors.
func TestMemoryLeft(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string // the files of the hierarchy
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

// TestTightest checks that the page cache of a group does not count as used and that files of tmpfs do. The group with
// the least memory left must be returned.
func TestTightest(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		first bool
		dir   string // the group with the limit
		want  Usage
		ok    bool
	}{
		"no limit":    {files: map[string]string{"a/memory.max": "max\n", "a/memory.current": "5\n"}},
		"cache":       {map[string]string{"a/b/memory.max": "100\n", "a/b/memory.current": "95\n", "a/b/memory.stat": "anon 20\nfile 70\nshmem 10\ninactive_file 40\nactive_file 20\nslab_reclaimable 1\n"}, false, "a/b", Usage{"", 100, 34}, true},
		"one above":   {map[string]string{"a/b/memory.max": "100\n", "a/b/memory.current": "30\n", "a/memory.max": "90\n", "a/memory.current": "80\n"}, false, "a", Usage{"", 90, 80}, true},
		"version 1":   {map[string]string{"a/b/memory.limit_in_bytes": "100\n", "a/b/memory.usage_in_bytes": "90\n", "a/b/memory.stat": "inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 10\n"}, true, "a/b", Usage{"", 100, 50}, true},
		"no limit, 1": {files: map[string]string{"a/memory.limit_in_bytes": "9223372036854771712\n", "a/memory.usage_in_bytes": "5\n"}, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			mount := filesIn(t, c.files)
			if c.ok {
				c.want.Dir = filepath.Join(mount, c.dir)
			}
			if got, ok := (Memory{filepath.Join(mount, "a/b"), mount, c.first}).Tightest(); got != c.want || ok != c.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}
