package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// filesIn returns a directory with these files. Their paths are relative to it.
func filesIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCPUOf checks that the limits of a control group and of its ancestors are found, in both versions.
func TestCPUOf(t *testing.T) {
	for name, c := range map[string]struct {
		// own is the control group of the process. mount has the type and the options of the hierarchy.
		own, mount string
		files      map[string]string
		want       []time.Duration
	}{
		"version 2": {"0::/a/b\n", "cgroup2 cgroup2 rw", map[string]string{
			"a/b/cpu.stat": "usage_usec 9\nnr_throttled 2\nthrottled_usec 1500\n", "a/cpu.stat": "throttled_usec 7\n", "cpu.stat": "usage_usec 3\n",
		}, []time.Duration{1500 * time.Microsecond, 7 * time.Microsecond}},
		"version 1": {"3:memory:/x\n2:cpu,cpuacct:/a/b\n0::/y\n", "cgroup cgroup rw,cpu,cpuacct", map[string]string{
			"a/b/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 42\n", "cpu.stat": "nr_periods 0\nthrottled_time 0\n",
		}, []time.Duration{42, 0}},
		"no controller":     {"0::/a\n", "cgroup2 cgroup2 rw", map[string]string{"a/cpu.stat": "usage_usec 9\n"}, nil},
		"another hierarchy": {"4:memory:/a\n", "cgroup cgroup rw,memory", map[string]string{"a/cpu.stat": "throttled_time 1\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mount := filesIn(t, c.files)
			kind := strings.Fields(c.mount)
			limits := CPUOf(c.own, "30 20 0:26 / "+mount+" rw - "+strings.Join(kind, " ")+"\n")
			var got []time.Duration
			for _, l := range limits {
				held, ok := l.Throttled()
				if !ok {
					t.Error("it cannot be read")
				}
				got = append(got, held)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
