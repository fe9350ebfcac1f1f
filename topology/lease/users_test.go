package lease

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
)

// TestDirectoryMustBeFit tests every reason why a directory is not fit.
func TestDirectoryMustBeFit(t *testing.T) {
	for name, c := range map[string]struct {
		root  bool
		spoil func(t *testing.T, dir string) string
		want  string
	}{
		"fit":        {want: ""},
		"not sticky": {want: "not sticky", spoil: func(t *testing.T, dir string) string { return chmod(t, dir, 0o777) }},
		"for some":   {want: "mode 0775", spoil: func(t *testing.T, dir string) string { return chmod(t, dir, 0o775|os.ModeSticky) }},
		"missing":    {want: "no such file", spoil: func(t *testing.T, dir string) string { return dir + "/none" }},
		"a file": {want: "not a directory", spoil: func(t *testing.T, dir string) string {
			if err := os.WriteFile(dir+"/f", nil, 0o777); err != nil {
				t.Fatal(err)
			}
			return dir + "/f"
		}},
		"a link": {want: "symbolic link", spoil: func(t *testing.T, dir string) string {
			if err := os.Symlink(directory(t), dir+"/link"); err != nil {
				t.Fatal(err)
			}
			return dir + "/link"
		}},
		"behind a link": {want: "symbolic link", spoil: func(t *testing.T, dir string) string {
			if err := os.Symlink("/", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			return dir + "/link" + dir
		}},
		"in a directory of all": {want: "not sticky", spoil: func(t *testing.T, dir string) string {
			below := filepath.Join(dir, "below")
			if err := os.Mkdir(below, 0o777); err != nil {
				t.Fatal(err)
			}
			chmod(t, dir, 0o777)
			return chmod(t, below, 0o777|os.ModeSticky)
		}},
		"of somebody else": {root: true, want: "belongs to uid 65534", spoil: func(t *testing.T, dir string) string {
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
			return dir
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root {
				needRoot(t)
			}
			dir := directory(t)
			if c.spoil != nil {
				dir = c.spoil(t, dir)
			}
			_, err := Open(dir, "")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.want != "" {
				if _, err := List(t.Context(), dir); err == nil {
					t.Error("its leases are listed")
				}
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Open("", "h")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range directories {
		if fit(dir) == nil {
			if s.Dir() != dir {
				t.Errorf("leases lie in %q, the first fit directory is %q", s.Dir(), dir)
			}
			return
		}
	}
	t.Errorf("leases lie in %q, which is no default", s.Dir())
}

// TestUsersHoldAgainstEachOther begins with files that one user has created under a narrow umask. It ends with
// another user holding the GPUs.
func TestUsersHoldAgainstEachOther(t *testing.T) {
	needRoot(t)
	dir := directory(t)
	narrow := 0o077
	first := start(t, nobody, order{Dir: dir, Umask: &narrow, Request: req("first", 9, gpus(2), 1, "GPU0")})
	first.want(t, "held")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode() != 0o666 || owner(info) != nobody {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
	blocked := start(t, other, order{Dir: dir, Umask: &narrow, Request: req("second", 5, gpus(2), 2, gpus(2)...)})
	if line := blocked.line(t); !strings.HasPrefix(line, "waiting") || !strings.Contains(line, `"uid":65534`) || !strings.Contains(line, `"run":"first"`) {
		t.Errorf("the second user is told %q", line)
	}
	first.kill()
	second := start(t, other, order{Dir: dir, Umask: &narrow, Request: req("second", 5, gpus(2), 2, gpus(2)...)})
	second.want(t, "held")
	if o := list(t, dir)[0].Leases[0].Owner; o == nil || o.UID != other || o.PID != second.cmd.Process.Pid {
		t.Errorf("GPU0 belongs to %+v", o)
	}
	refused(t, turnOf(t, open(t, dir, "")), req("root", 1, gpus(2), 1, "GPU0"))
	second.end(t)
	third := start(t, nobody, order{Dir: dir, Request: req("third", 7, gpus(2), 2, gpus(2)...)})
	third.want(t, "held")
	third.end(t)
}

// TestProtectedRegular sets fs.protected_regular during the test. O_CREAT then fails for a file of another user
// in a sticky directory.
func TestProtectedRegular(t *testing.T) {
	needRoot(t)
	const path = "/proc/sys/fs/protected_regular"
	before, err := os.ReadFile(path)
	if err != nil {
		noskip.Skip(t, "the kernel has no fs.protected_regular: %v", err)
	}
	for _, value := range []string{"1", "2"} {
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			noskip.Skip(t, "fs.protected_regular cannot be set: %v", err)
		}
		defer os.WriteFile(path, before, 0)
		dir := directory(t)
		for i, uid := range []int{nobody, other, 0, nobody} {
			h := start(t, uid, order{Dir: dir, Request: req("r", i, gpus(2), 2, gpus(2)...)})
			h.want(t, "held")
			h.kill()
		}
		// The setting has its effect: even root cannot open the file of another user with O_CREAT.
		file := open(t, dir, "").path(kindGPU, "GPU0")
		if f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666); !errors.Is(err, os.ErrPermission) {
			t.Errorf("fs.protected_regular=%s does not bar O_CREAT: %v", value, err)
			f.Close()
		}
	}
}

// TestPlantedFilesBarTheirGPUOnly tests what another user may put into a shared directory. gangrun must not
// follow it, wait for it or write to it.
func TestPlantedFilesBarTheirGPUOnly(t *testing.T) {
	for name, plant := range map[string]func(path, target string) error{
		"a link":          func(path, target string) error { return os.Symlink(target, path) },
		"a dangling link": func(path, target string) error { return os.Symlink(target+"-none", path) },
		"a pipe":          func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
		"a directory":     func(path, _ string) error { return os.Mkdir(path, 0o777) },
		"a narrow mode":   func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			s := open(t, dir, "")
			target := filepath.Join(dir, "precious")
			if err := os.WriteFile(target, []byte("precious"), 0o666); err != nil {
				t.Fatal(err)
			}
			chmod(t, target, 0o666)
			for _, path := range []string{s.path(kindGPU, "GPU0"), s.path(kindTicket, "0")} {
				if err := plant(path, target); err != nil {
					t.Fatal(err)
				}
			}
			w := refused(t, turnOf(t, s), req("r", 1, gpus(2), 2, gpus(2)...))
			if l := w.Leases[0]; l.State != StateBarred || !strings.Contains(l.Warning, "GPU0") {
				t.Errorf("GPU0 is %+v", l)
			}
			if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "ticket") {
				t.Errorf("the ticket's file is told as %v", w.Warnings)
			}
			take(t, s, req("r", 1, gpus(2), 1, "GPU1"))
			if _, err := Release(t.Context(), dir); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(target); string(text) != "precious" {
				t.Errorf("the file holds %q, %v", text, err)
			}
			if _, err := os.Lstat(target + "-none"); err == nil {
				t.Error("a link was followed")
			}
		})
	}
}

func TestTornRecords(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	h := start(t, 0, order{Dir: dir, Request: req("dies", 9, gpus(3), 3, gpus(3)...)})
	h.want(t, "held")
	tear := func(device string, how func(data []byte) []byte) {
		t.Helper()
		path := s.path(kindGPU, device)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, how(data), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tear("GPU0", func(data []byte) []byte { return data[:len(data)/2] })
	tear("GPU1", func(data []byte) []byte { data[len(data)/2] ^= 4; return data })
	tear("GPU2", func([]byte) []byte { return nil })
	for _, l := range list(t, dir)[0].Leases {
		if l.State != StateHeld || l.Owner != nil || l.Warning == "" {
			t.Errorf("while it is held: %+v", l)
		}
	}
	refused(t, turnOf(t, s), req("next", 5, gpus(3), 1, "GPU0"))
	h.kill()
	for i, l := range list(t, dir)[0].Leases {
		want := []State{StateDead, StateDead, StateFree}[i]
		if l.State != want || l.Owner != nil || (l.Warning != "") != (want == StateDead) {
			t.Errorf("after its death: %+v", l)
		}
	}
	held := take(t, s, req("next", 5, gpus(3), 1, "GPU0"))
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if gone, err := Release(t.Context(), dir); err != nil || len(gone) != 1 || len(gone[0].Leases) != 1 || gone[0].Leases[0].Device != "GPU1" {
		t.Errorf("released %+v, %v", gone, err)
	}
}

// TestForeignLock tests a lock that another program has taken, such as flock(1).
func TestForeignLock(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	f, err := lock(s.path(kindGPU, "GPU0"), os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	w := refused(t, turnOf(t, s), req("r", 5, gpus(1), 1, "GPU0"))
	if l := w.Leases[0]; l.State != StateHeld || l.Warning == "" {
		t.Errorf("the GPU is %+v", l)
	}
	f.drop()
	take(t, s, req("r", 5, gpus(1), 1, "GPU0"))
}

func TestFullDisk(t *testing.T) {
	needRoot(t)
	dir := directory(t)
	mount := filepath.Join(dir, "full")
	if err := os.Mkdir(mount, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("gangrun", mount, "tmpfs", 0, "size=64k,mode=1777"); err != nil {
		noskip.Skip(t, "root may not mount a tmpfs: %v", err)
	}
	defer func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s := open(t, mount, "")
	turn := s.Turn()
	defer turn.Close()
	refused(t, turn, req("r", 5, gpus(4), 3)) // a ticket that exists already
	filler, err := os.Create(filepath.Join(mount, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	pages := 0
	for ; err == nil; pages++ {
		_, err = filler.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) || pages < 4 {
		t.Fatalf("the disk is not full after %d pages: %v", pages, err)
	}
	// There is room for the first of three records.
	if err := filler.Truncate(int64(pages-2) * 4096); err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	held, w, err := turn.Try(t.Context(), req("r", 5, gpus(4), 3, gpus(3)...))
	if !errors.Is(err, unix.ENOSPC) || held != nil || w != nil {
		t.Fatalf("on a full disk: %v, %+v, %v", held, w, err)
	}
	for d, state := range states(t, mount) {
		if state != StateFree {
			t.Errorf("%s is %s", d, state)
		}
	}
	if _, _, err := turnOf(t, s).Try(t.Context(), req("new", 1, gpus(4), 1)); !errors.Is(err, unix.ENOSPC) {
		t.Logf("a new ticket on a full disk: %v", err)
	}
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	held, _, err = turn.Try(t.Context(), req("r", 5, gpus(4), 3, gpus(3)...))
	if err != nil || held == nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}
