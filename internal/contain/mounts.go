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
	kind     string // as in "ext4"
	readonly bool
	file     bool // a file is mounted, no directory
	hidden   bool // the caller cannot get there
}

// virtual are kinds of file systems that hold no files of users.
var virtual = map[string]bool{
	"autofs": true, "binfmt_misc": true, "bpf": true, "cgroup": true, "cgroup2": true, "configfs": true, "debugfs": true,
	"devpts": true, "devtmpfs": true, "efivarfs": true, "fusectl": true, "mqueue": true, "nsfs": true,
	"proc": true, "pstore": true, "rpc_pipefs": true, "securityfs": true, "selinuxfs": true, "sysfs": true, "tracefs": true,
}

// parseMounts reads mountinfo, as proc_pid_mountinfo(5) has it.
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
		if len(right) >= 3 { // of the file system, wherever it is mounted
			m.readonly = m.readonly || slices.Contains(strings.Split(right[2], ","), "ro")
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// unescape undoes the octal escapes of mountinfo: blank, tab, newline, backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// visible returns the mounts that can be seen at their paths. Others are covered by a later
// mount over them or over a directory above.
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
		case err != nil: // a directory above is closed to the caller, or a file system is dead
			m.hidden = true
		default:
			m.file = stat.Mode&unix.S_IFMT != unix.S_IFDIR
		}
		seen = append(seen, m)
	}
	return seen, nil
}
