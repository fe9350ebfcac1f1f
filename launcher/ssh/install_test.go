package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

func TestInstall(t *testing.T) {
	s, c := hostIn(t, ":")
	p := small()
	start := func() string {
		t.Helper()
		return started(t, c, p, "say", "a", "bridge-1")
	}
	if !missing(t, c, p) {
		t.Error("it is there before it was installed")
	}

	path, note := installed(t, c, p)
	if want := s.Path("home/.cache/gangrun/" + p.Hash + "/gangrun"); path != want || note != "" {
		t.Errorf("path %q, note %q, want %q and no note", path, note, want)
	}
	for file, mode := range map[string]os.FileMode{path: 0o755, filepath.Dir(path): 0o700, filepath.Dir(filepath.Dir(path)): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if got := output(t, c, runLine(path, "say", "x y", "it's", "$HOME")); got != "x y it's $HOME\n" {
		t.Errorf("it says %q", got)
	}
	old := time.Now().Add(-40 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Dir(path), old, old); err != nil {
		t.Fatal(err)
	}
	if got := start(); got != "a bridge-1\n" {
		t.Errorf("it says %q", got)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("starting it did not mark it as used: %v, %v", info.ModTime(), err)
	}
	// The second time, the program must not be sent.
	p.Open = func() (io.ReadCloser, error) { t.Error("sent again"); return nil, errors.New("no") }
	if again, _ := installed(t, c, p); again != path {
		t.Errorf("the second time it is in %q", again)
	}
	// A damaged program must not be run, even if only one byte differs. It must be installed again, with a note. Other
	// files in its place must be replaced without a note.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		ruin  func() error
		noted bool
	}{
		"cut short": {func() error { return os.Truncate(path, p.Size-1) }, true},
		"another byte": {func() error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			other := bytes.Clone(whole)
			other[len(other)-2] ^= 1
			return errors.Join(os.WriteFile(path, other, 0o755), os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, true},
		"another byte, and nothing noted": {func() error {
			other := bytes.Clone(whole)
			other[len(other)-2] ^= 1
			return errors.Join(os.WriteFile(path, other, 0o755), os.Remove(filepath.Dir(path)+"/whole"))
		}, true},
		"a directory":           {func() error { return errors.Join(os.Remove(path), os.MkdirAll(path+"/x", 0o755)) }, false},
		"a link to a directory": {func() error { return errors.Join(os.Remove(path), os.Symlink(s.Path("home"), path)) }, false},
	} {
		if err := test.ruin(); err != nil {
			t.Fatal(name, err)
		}
		if !missing(t, c, p) {
			t.Errorf("%s: it is run", name)
		}
		if _, note := installed(t, c, small()); strings.Contains(note, path+" was damaged") != test.noted {
			t.Errorf("%s: note %q", name, note)
		}
		if got := start(); got != "a bridge-1\n" {
			t.Errorf("%s: it was not replaced: it prints %q", name, got)
		}
	}
	// A program that was found complete is not read again until it changes.
	read := func() bool { // if it is not read, the record about it does not change
		t.Helper()
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Dir(path)+"/whole", old, old); err != nil {
			t.Fatal(err)
		}
		if got := start(); got != "a bridge-1\n" {
			t.Errorf("it says %q", got)
		}
		info, err := os.Stat(filepath.Dir(path) + "/whole")
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(info.ModTime()) < time.Minute
	}
	if read() {
		t.Error("a program that has not changed was read again")
	}
	if err := os.Chmod(path, 0o711); err != nil {
		t.Fatal(err)
	}
	if !read() || read() {
		t.Error("a program that has changed was not read again, once")
	}
	// Parts of programs whose sender has ended must be removed at the next start. Other parts must stay.
	for name, age := range map[string]time.Duration{".00aa": time.Hour, ".11bb": 0} {
		s.Write(strings.TrimPrefix(filepath.Dir(path), s.Dir)+"/"+name, "x")
		if err := os.Chtimes(filepath.Dir(path)+"/"+name, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if s.Has(filepath.Dir(path)+"/.00aa") || !s.Has(filepath.Dir(path)+"/.11bb") {
		t.Error("of an old piece and a new one not just the old one went")
	}
	if err := os.Remove(filepath.Dir(path) + "/.11bb"); err != nil {
		t.Fatal(err)
	}
	// A directory that other users can write must not be used.
	if err := os.Chmod(s.Path("home/.cache/gangrun"), 0o777); err != nil {
		t.Fatal(err)
	}
	if !missing(t, c, p) {
		t.Error("from a directory that anybody can write it runs")
	}
	if got := s.Tool("find", s.Path("home"), "-name", ".*", "-not", "-name", ".cache"); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

func TestInstallElsewhere(t *testing.T) {
	p := small()
	for _, test := range []struct {
		name, home, env, want, why string
	}{
		{name: "XDG_CACHE_HOME", home: "mkdir -p $HOME/xdg", env: "XDG_CACHE_HOME=HOME/xdg", want: "HOME/xdg/gangrun"},
		{name: "relative XDG_CACHE_HOME", home: ":", env: "XDG_CACHE_HOME=xdg", want: "HOME/.cache/gangrun"},
		{name: "read-only", home: "mount -t tmpfs -o ro home $HOME", want: "/tmp/gangrun-UID", why: "Read-only file system"},
		{name: "noexec", home: "mount -t tmpfs -o noexec home $HOME", want: "/tmp/gangrun-UID", why: "noexec"},
		{name: "full", home: "mount -t tmpfs -o size=1m home $HOME", want: "/tmp/gangrun-UID", why: "No space left on device"},
		{name: "quite full", home: "mount -t tmpfs -o size=8k home $HOME; cat /dev/zero >$HOME/x || :", want: "/tmp/gangrun-UID", why: "No space left on device"},
		{name: "missing", home: "rmdir $HOME; touch $HOME", want: "/tmp/gangrun-UID", why: "mkdir"},
		{name: "runtime directory", home: "mount -t tmpfs -o ro home $HOME; mkdir /tmp/run", env: "XDG_RUNTIME_DIR=/tmp/run", want: "/tmp/run/gangrun", why: "Read-only"},
		{name: "link in /tmp", home: "mount -t tmpfs -o ro home $HOME; mkdir /tmp/x; ln -s /tmp/x /tmp/gangrun-$(id -u)", want: "/dev/shm/gangrun-UID", why: "symbolic link"},
		{name: "another's in /tmp", home: "mount -t tmpfs -o ro home $HOME; mkdir -m 777 /tmp/gangrun-0; chown 1 /tmp/gangrun-0", want: "/dev/shm/gangrun-UID", why: "belongs to somebody else"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := "NOTHING=1"
			if test.env != "" {
				env = test.env
			}
			s := sshtest.New(t)
			s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
			home := s.Path("home")
			s.StartIn("n1", private(s, test.home), "SetEnv HOME="+home+" "+strings.ReplaceAll(env, "=HOME", "="+home)).Known().Named()
			c := dial(t, client(s), "n1")
			path, note := installed(t, c, p)
			want := strings.NewReplacer("HOME", home, "UID", fmt.Sprint(os.Getuid())).Replace(test.want) + "/" + p.Hash + "/gangrun"
			if path != want {
				t.Errorf("it is in %s, want %s", path, want)
			}
			if !strings.Contains(note, test.why) || (note == "") != (test.why == "") || test.why != "" && !strings.Contains(note, filepath.Dir(filepath.Dir(path))) {
				t.Errorf("note %q, want %q", note, test.why)
			}
			if got := started(t, c, p, "say", "hello"); got != "hello\n" {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestInstallNowhere(t *testing.T) {
	_, c := hostIn(t, "for d in $HOME /tmp /dev/shm; do mkdir -p $d; done; mount -t tmpfs -o size=1m home $HOME; mkdir /tmp/gangrun-0; mount -t tmpfs -o size=1m x /tmp/gangrun-0; mount -t tmpfs -o size=1m shm /dev/shm")
	_, _, err := install(t.Context(), c, small())
	var failed *InstallError
	if !errors.As(err, &failed) || len(failed.Tries) != 3 || strings.Count(err.Error(), "No space left on device") != 3 || !strings.Contains(failed.Hint(), "free space") {
		t.Fatalf("%T: %v", err, err)
	}
	if !strings.Contains(err.Error(), `host "n1"`) {
		t.Errorf("%v", err)
	}
}

func TestInstallRefuses(t *testing.T) {
	s, c := hostIn(t, ":")
	text := []byte("#!/bin/sh\nexit 3\n")
	other := programOf(text)
	other.Hash = small().Hash
	broken := programOf(text)
	broken.Open = func() (io.ReadCloser, error) { return nil, errors.New("it was deleted") }
	for name, test := range map[string]struct {
		program Program
		want    string
	}{
		"another hash":       {other, "is not what was sent"},
		"does not run":       {programOf(text), "code 3"},
		"another kind":       {programOf([]byte("\x7fELF\x02\x01\x01 and nothing more")), "it does not run from"},
		"cannot be read":     {broken, "it was deleted"},
		"upper-case hash":    {Program{Hash: strings.ToUpper(small().Hash), Size: 1}, "is not a SHA-256"},
		"a hash that is not": {Program{Hash: "$(touch x)", Size: 1}, "is not a SHA-256"},
		"name":               {Program{Hash: small().Hash, Size: 1, Name: "a;b"}, "may only have a to z"},
	} {
		_, _, err := install(t.Context(), c, test.program)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if got := s.Tool("find", s.Path("home/.cache"), "-type", "f"); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

// TestInstallWithoutSha256sum checks that the program verifies itself on a host without sha256sum.
func TestInstallWithoutSha256sum(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	bin := s.Path("bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("sh id ls wc touch mkdir chmod cat head mv rm rmdir find") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Start("n1", "SetEnv PATH="+bin+" HOME="+s.Path("home")).Known().Named()
	c := dial(t, client(s), "n1")
	if path, _ := installed(t, c, self()); path == "" {
		t.Error("no path")
	}
	other := self()
	other.Hash = strings.Repeat("0", 64)
	if _, _, err := install(t.Context(), c, other); err == nil || !strings.Contains(err.Error(), "is not what was sent") {
		t.Errorf("another hash: %v", err)
	}
}

func TestInstallAtOnce(t *testing.T) {
	s, c := hostIn(t, ":")
	d := client(s)
	clients := []*Conn{c, dial(t, d, "n1"), dial(t, d, "n1"), dial(t, d, "n1")}
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			if _, note, err := install(t.Context(), c, small()); err != nil || note != "" {
				t.Errorf("%v, note %q", err, note)
				return
			}
			if got := started(t, c, small(), "say"); got != "\n" {
				t.Errorf("it says %q", got)
			}
		})
	}
	all.Wait()
	if got := s.Tool("find", s.Path("home/.cache/gangrun"), "-mindepth", "1", "-printf", "%P\n"); strings.Count(got, "\n") != 3 { // its directory, the program, and the record about it
		t.Errorf("there are %s", got)
	}
}

func TestSweep(t *testing.T) {
	s, c := hostIn(t, ":")
	root := s.Path("home/.cache/gangrun")
	name := func(digit string) string { return strings.Repeat(digit, 64) }
	plant := func(dir string, age time.Duration) {
		s.Write(strings.TrimPrefix(root, s.Dir+"/")+"/"+dir+"/gangrun", "")
		when := time.Now().Add(-age)
		for _, path := range []string{root + "/" + dir + "/gangrun", root + "/" + dir} {
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	const day = 24 * time.Hour
	plant(name("1"), 40*day) // must be removed
	plant(name("2"), 20*day)
	plant("not-a-hash", 40*day)
	plant(".old."+name("3"), 2*day) // must be removed; an earlier sweep was cut short
	plant(name("4"), 40*day)        // is running
	piece, fresh := s.Write("home/.cache/gangrun/"+name("2")+"/.00aa", "x"), s.Write("home/.cache/gangrun/"+name("2")+"/.11bb", "x")
	if err := os.Chtimes(piece, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	running := root + "/" + name("4") + "/gangrun"
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(running, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(running, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, running, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); cmd.Wait() }()
	old := time.Now().Add(-40 * day)
	if err := os.Chtimes(filepath.Dir(running), old, old); err != nil {
		t.Fatal(err)
	}
	installed(t, c, small())
	for dir, stays := range map[string]bool{name("1"): false, name("2"): true, "not-a-hash": true, ".old." + name("3"): false, name("4"): true, small().Hash: true} {
		if _, err := os.Stat(root + "/" + dir); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", dir, err, stays)
		}
	}
	if s.Has(piece) || !s.Has(fresh) {
		t.Error("of an old piece of an installation and a new one not just the old one went")
	}
}

func TestInstallCancelled(t *testing.T) {
	s, c := hostIn(t, ":")
	ctx, cancel := context.WithCancel(t.Context())
	p := small()
	open := p.Open
	p.Open = func() (io.ReadCloser, error) { cancel(); return open() }
	if _, _, err := install(ctx, c, p); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	done(t, c) // data on its way must not delay the end
	// The part that arrived must not run as the program, and must not stay under its name.
	installed(t, dial(t, client(s), "n1"), small())
	if got := s.Tool("find", s.Path("home/.cache/gangrun"), "-name", "gangrun", "-type", "f"); strings.Count(got, "\n") != 1 {
		t.Errorf("there are %s", got)
	}
}

// TestScripts checks that the scripts have only characters that every login shell passes on.
func TestScripts(t *testing.T) {
	for _, text := range []string{installScript, takeScript} {
		if strings.ContainsAny(text, "'!\\`#") && !strings.Contains(text, "${#h}") || strings.ContainsAny(text, "'!\\`") {
			t.Error("a script has a character that a login shell may change")
		}
		line := script(text, "a")
		if strings.ContainsAny(line, "\n\t") {
			t.Error("a script is more than one line")
		}
		if out, err := exec.Command("/bin/sh", "-n", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if out, err := exec.Command("/bin/sh", "-n", "-c", strings.Join(strings.Fields(text), " ")).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func FuzzParseReports(f *testing.F) {
	f.Add("welcome\n@gangrun 0 no /home/a b/.cache\nmkdir: no\nreally\n@gangrun 3 can /tmp/gangrun-0\n")
	f.Add("@gangrun 9 can /x\n@gangrun x\n@gangrun \n")
	f.Add("@gangrun 5 none")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range parseReports(text) {
			if r.place < 0 || r.place > places || strings.Contains(r.words, "\n") {
				t.Fatalf("%+v", r)
			}
		}
	})
}
