package contain

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a mounted file system.
type mount struct {
	id       int
	point    string
	kind     string // the type, as in "ext4"
	readonly bool
	file     bool // a file is mounted, and not a directory
	hidden   bool // the caller cannot reach the mount
}

// virtual has the types of file systems that have no files of users.
var virtual = map[string]bool{
	"autofs": true, "binfmt_misc": true, "bpf": true, "cgroup": true, "cgroup2": true, "configfs": true, "debugfs": true,
	"devpts": true, "devtmpfs": true, "efivarfs": true, "fusectl": true, "mqueue": true, "nsfs": true,
	"proc": true, "pstore": true, "rpc_pipefs": true, "securityfs": true, "selinuxfs": true, "sysfs": true, "tracefs": true,
}

// parseMounts reads mounts in the format of proc_pid_mountinfo(5).
func parseMounts(from io.Reader) ([]mount, error) {
	var all []mount
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(left) < 6 {
			continue
		}
		id, err := strconv.Atoi(left[0])
		if err != nil {
			continue
		}
		m := mount{id: id, point: unescape(left[4]), kind: right[0]}
		m.readonly = slices.Contains(strings.Split(left[5], ","), "ro")
		if len(right) >= 3 { // these fields describe the file system, wherever it is mounted
			m.readonly = m.readonly || slices.Contains(strings.Split(right[2], ","), "ro")
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// unescape replaces the octal escapes of mountinfo by the characters: blank, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// visible returns the mounts that can be seen at their paths. The other mounts are covered by a later mount over them,
// or over a directory above them.
func visible() ([]mount, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := parseMounts(file)
	if err != nil {
		return nil, err
	}
	seen := all[:0]
	for _, m := range all {
		var stat unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, m.point, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID|unix.STATX_TYPE, &stat)
		switch {
		case err == unix.ENOENT || err == unix.ENOTDIR || err == nil && int(stat.Mnt_id) != m.id:
			continue
		case err != nil: // a directory above the mount is closed to the caller, or a file system is dead
			m.hidden = true
		default:
			m.file = stat.Mode&unix.S_IFMT != unix.S_IFDIR
		}
		seen = append(seen, m)
	}
	return seen, nil
}
