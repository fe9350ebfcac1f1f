package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is how much of its limit a control group uses, in bytes.
type Usage struct {
	Dir   string // the group that has the limit
	Limit int64
	// Used does not count the page cache and other caches that the kernel frees before it kills a process.
	Used int64
}

// Tightest looks at the group and at the groups above it. It returns the usage of that group which has the
// least memory left. ok is false if none of these groups has a limit.
func (g Memory) Tightest() (u Usage, ok bool) {
	limit, usage := "memory.max", "memory.current"
	if g.V1 {
		limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	for dir := g.Dir; strings.HasPrefix(dir, g.Mount); dir = filepath.Dir(dir) {
		most, limited := numberIn(dir, limit)
		used, known := numberIn(dir, usage)
		if limited && known && most > 0 && most < unlimited {
			used = max(0, used-g.reclaimable(dir))
			if !ok || most-used < u.Limit-u.Used {
				u, ok = Usage{dir, most, used}, true
			}
		}
		if dir == "/" {
			break
		}
	}
	return u, ok
}

// unlimited is less than the largest multiple of a page, which is the number that version 1 shows if there is no limit.
const unlimited = 1 << 62

// numberIn reads the number in a file of a group. ok is false if the file has no number, for instance if it has "max".
func numberIn(dir, name string) (n int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// reclaimable returns the bytes that the kernel can free at once. Files of /dev/shm and of other tmpfs do not count,
// because the kernel does not have them in its lists of files.
func (g Memory) reclaimable(dir string) (sum int64) {
	data, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	prefix := ""
	if g.V1 {
		prefix = "total_" // includes the groups below
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		switch name {
		case "active_file", "inactive_file", "slab_reclaimable":
			n, _ := strconv.ParseInt(value, 10, 64)
			sum += n
		}
	}
	return sum
}
