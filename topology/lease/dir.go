package lease

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Env is the environment variable that names the directory of the leases. All users of a
// machine must use the same directory. Callers read the variable and pass its value to Open.
const Env = "GANGRUN_LEASE_DIR"

// directories are the default directories for leases. Open takes the first one that is fit,
// so all users of a machine find the same one. The system creates each of them for all
// users, they belong to root, and they are not in TMPDIR. A reboot empties the first two.
// It voids the leases in the third, since it ends all processes.
//
// /run/lock is meant for locks. If only root may write there (Red Hat), /dev/shm is next.
// It is not the first because systemd-logind may remove files there when their owner logs
// out (RemoveIPC; off by default on Red Hat). Held notices that loss. /tmp is not in the
// list: it is often private to a login, and files in it are removed by age.
var directories = [...]string{"/run/lock", "/dev/shm", "/var/tmp"}

// Space gives access to the leases of one host, in one directory. Its methods may be called
// concurrently. It keeps no file open.
type Space struct {
	dir    string
	host   string        // "" for this machine
	part   string        // the host, as a part of the names of files
	pulse  time.Duration // how often Held checks its files
	repoll time.Duration // how often a waiting gang looks even if nothing changes
	clock  func() time.Time
}

// Open returns the Space of a host in the directory dir. host is the name of a simulated host, or empty for
// this machine. If dir is empty, Open uses the first of the directories /run/lock, /dev/shm and /var/tmp that
// is fit.
//
// A directory is fit if it is local, has mode 1777, has no symbolic link in its path, and only
// root or the caller could have created it. If dir is not fit, Open returns an error with the
// reason.
func Open(dir, host string) (*Space, error) {
	dir, err := find(dir)
	if err != nil {
		return nil, err
	}
	part := "@"
	if host != "" {
		part = escape(host)
	}
	return &Space{dir: dir, host: host, part: part, pulse: time.Second, repoll: 2 * time.Second, clock: time.Now}, nil
}

// Dir returns the directory of the leases.
func (s *Space) Dir() string { return s.dir }

func find(dir string) (string, error) {
	if dir != "" {
		abs, err := filepath.Abs(dir)
		if err == nil {
			err = fit(abs)
		}
		if err != nil {
			return "", fmt.Errorf("cannot keep leases in %q: %w", dir, err)
		}
		return abs, nil
	}
	var why []error
	for _, dir := range directories {
		err := fit(dir)
		if err == nil {
			return dir, nil
		}
		why = append(why, fmt.Errorf("%q: %w", dir, err))
	}
	return "", fmt.Errorf("no directory is fit for leases; have root make one of mode 1777 and name it in %s: %w", Env, errors.Join(why...))
}

// fit returns an error if the absolute path dir cannot hold leases.
func fit(dir string) error {
	dir = filepath.Clean(dir)
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if err := trusted(at, info); err != nil {
			return err
		}
		if at == dir && info.Mode().Perm() != 0o777 {
			return fmt.Errorf("mode %#o; it must be 01777 so that every user can write to it", info.Mode().Perm())
		}
		if at == dir && info.Mode()&fs.ModeSticky == 0 {
			return errors.New("it is not sticky; its mode must be 01777")
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK|unix.R_OK); err != nil {
		return err
	}
	return local(dir)
}

// trusted returns an error if a user other than root and the caller could replace at or, if it is a directory,
// its content.
func trusted(at string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%q is a symbolic link; give the path without it", at)
	}
	if !info.IsDir() {
		return fmt.Errorf("%q is not a directory", at)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of %q is not known", at)
	}
	if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%q belongs to uid %d, who could replace what is in it; it must be root's", at, stat.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("others may replace what is in %q: it is writable for them and not sticky", at)
	}
	return nil
}

// remote lists the file systems that several machines may share, or on which flock may have
// no effect.
var remote = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB2",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "FUSE", unix.OCFS2_SUPER_MAGIC: "OCFS2", unix.NCP_SUPER_MAGIC: "NCP",
	0x0BD00BD0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS", 0x01161970: "GFS2", 0xAAD7AAEA: "PanFS",
}

func local(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return err
	}
	if name := remote[uint32(stat.Type)]; name != "" {
		return fmt.Errorf("it is on %s, which is not local to this machine", name)
	}
	return nil
}

// prefix is the beginning of the names of all files of gangrun.
const prefix = "gangrun."

// The kinds of files.
const (
	kindGPU    = "gpu"
	kindTicket = "ticket"
	kindOrder  = "order"
)

// path returns the path of the file of a kind. The file of kindOrder needs no name.
func (s *Space) path(kind, name string) string {
	file := prefix + s.part + "." + kind
	if kind != kindOrder {
		file += "." + escape(name)
	}
	return filepath.Join(s.dir, file)
}

// split returns the parts of a file's name. The parts are still escaped. ok is false if the file is not
// gangrun's.
func split(file string) (host, kind, name string, ok bool) {
	rest, ours := strings.CutPrefix(file, prefix)
	parts := strings.Split(rest, ".")
	if !ours || len(parts) < 2 || len(parts) > 3 {
		return "", "", "", false
	}
	host, kind = parts[0], parts[1]
	if (kind == kindOrder) != (len(parts) == 2) || kind != kindOrder && kind != kindGPU && kind != kindTicket {
		return "", "", "", false
	}
	if len(parts) == 3 {
		name = parts[2]
	}
	return host, kind, name, true
}

// escape returns name as a part of a file's name. Bytes other than letters, digits, - and _
// become %XX. If the result has more than 80 bytes, it is cut and ends in a tilde and a
// hash.
func escape(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= 80 {
		return b.String()
	}
	return fmt.Sprintf("%s~%x", b.String()[:40], sha256.Sum256([]byte(name)))[:40+1+32]
}

// unescape is the reverse of escape, for messages. It returns a shortened name unchanged.
func unescape(part string) string {
	name, err := url.PathUnescape(part)
	if err != nil || strings.Contains(part, "~") && !utf8.ValidString(name) { // the name was cut within a character
		return part
	}
	return name
}
