package testhosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// makeCgroups makes a version 2 cgroup for the bed, and in it one for each host and one for
// the controller. It records the paths of all cgroups of the bed. It returns no error if the
// machine has no cgroup that can be frozen, or does not permit to make one.
func (b *Bed) makeCgroups() error {
	if !b.settings.noCgroup {
		b.cgroup2, b.cgroup = cgroup2()
	}
	if b.cgroup != "" {
		b.cgroup = filepath.Join(b.cgroup, "gangrun-testhosts-"+filepath.Base(b.dir))
		if os.Mkdir(b.cgroup, 0o755) != nil {
			b.cgroup, b.cgroup2 = "", ""
		} else if _, err := os.Stat(filepath.Join(b.cgroup, "cgroup.freeze")); err != nil {
			_ = os.Remove(b.cgroup)
			b.cgroup, b.cgroup2 = "", ""
		}
	}
	err := b.makeV1Cgroups()
	errs := []error{err, b.write("cgroups", 0o644, strings.Join(append([]string{b.cgroup}, b.v1...), "\n"))}
	if b.cgroup != "" {
		errs = append(errs, os.Mkdir(filepath.Join(b.cgroup, "ctl"), 0o755))
		for _, h := range b.hosts {
			errs = append(errs, os.Mkdir(b.cgroupOf(h.name), 0o755))
		}
	}
	return errors.Join(errs...)
}

// cgroupOf returns the path of the cgroup of a host or of the controller; "" if there is none.
func (b *Bed) cgroupOf(name string) string {
	if b.cgroup == "" {
		return ""
	}
	return filepath.Join(b.cgroup, name)
}

// cgroup2 returns where the version 2 hierarchy is mounted, and the directory of this
// process's cgroup in it. Both are "" if it is not mounted.
func cgroup2() (mount, own string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			mount = fields[4]
		}
	}
	if mount == "" {
		return "", ""
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = filepath.Join(mount, path)
		}
	}
	if _, err := os.Stat(own); own == "" || err != nil {
		own = mount
	}
	return mount, own
}

// removeBelow removes the cgroups below dir. Processes of a host that has ended made them.
func removeBelow(dir string) error {
	if dir == "" {
		return nil
	}
	var below []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			below = append(below, path)
		}
		return err
	})
	for _, path := range slices.Backward(below) {
		err = errors.Join(err, remove(path))
	}
	return err
}

// remove removes a cgroup. The kernel may still have to remove the last process from it.
func remove(cgroup string) error {
	return eventually(func() (bool, error) {
		err := os.Remove(cgroup)
		if errors.Is(err, syscall.EBUSY) {
			return false, nil
		}
		return true, err
	})
}

// setFrozen freezes or thaws a cgroup, and waits until that is done.
func setFrozen(cgroup string, frozen bool) error {
	value := map[bool]string{false: "0", true: "1"}[frozen]
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.freeze"), []byte(value), 0o644); err != nil {
		return err
	}
	return eventually(func() (bool, error) {
		events, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events"))
		return bytes.Contains(events, []byte("frozen "+value)), err
	})
}

// eventually calls done until it returns true or an error, for at most limit.
func eventually(done func() (bool, error)) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Since(start) > limit {
			return fmt.Errorf("it is not so after %v", limit)
		}
	}
}
