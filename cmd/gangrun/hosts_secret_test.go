package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// terminal is a pseudoterminal, as a user has one.
type terminal struct {
	master, tty *os.File
	shown       lockedBuffer
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{master: master, tty: tty}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			_, _ = x.shown.Write(buffer[:n])
			if err != nil {
				return // no process has the terminal open any more
			}
		}
	}()
	t.Cleanup(func() {
		tty.Close()
		<-done
		master.Close()
	})
	return x
}

// asks reports whether a program asks for a passphrase, with echo switched off.
func (x *terminal) asks() bool {
	state, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO == 0 && strings.Contains(x.shown.String(), "passphrase for key")
}

// secretFile is a job file. Its job prints its secret and fails.
const secretFile = `ranks: 2
mpi: none
env: {FROM_FILE: %s-file}
secret: [TOKEN, FROM_FILE]
checkpoint-dir: ckpt
preflight: static
retries: 0
output: none
command:
  - sh
  - -c
  - |
    : > ready.$RANK
    while [ ! -e go ]; do sleep 0.05; done
    [ $RANK -ne 1 ] || { echo "RuntimeError: $TOKEN was not let in, $FROM_FILE neither" >&2; exit 3; }
    sleep 1000
`

// TestHostSecrets looks for secrets wherever other users could find them, and checks what another user can do to a
// run. On h1, the user is root with an encrypted key. On h2, the user is alice.
func TestHostSecrets(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	ctl := bed.Controller()
	secrets := []string{aSecret, testhosts.Passphrase}
	for _, name := range []string{"id_ed25519", "id_encrypted", "id_alice"} {
		key, err := os.ReadFile(ctl.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(key), "\n")
		secrets = append(secrets, lines[len(lines)/2])
	}
	config, err := os.ReadFile(ctl.SSHConfig())
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("Host h1\n\tIdentityFile %s\n\tIdentitiesOnly yes\nHost h2\n\tUser alice\n\tIdentityFile %s\n\tIdentitiesOnly yes\n", ctl.Key("id_encrypted"), ctl.Key("id_alice"))
	file := filepath.Join(bed.Shared(), "job.yaml")
	ckpt := filepath.Join(bed.Shared(), "ckpt")
	// Users must themselves hide a job file with secrets. The test moves the file away when gangrun has read it.
	err = errors.Join(os.Mkdir(ckpt, 0o777), os.Chmod(ckpt, 0o777), os.WriteFile(ctl.SSHConfig(), []byte(own+"Host *\n"+string(config)), 0o600), os.WriteFile(file, fmt.Appendf(nil, secretFile, aSecret), 0o600))
	if err != nil {
		t.Fatal(err)
	}

	person := openTerminal(t)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &farRun{t: t, bed: bed, gangrun: gangrun, begun: time.Now(), exited: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cmd = ctl.Command(ctx, gangrun, "run", "--hosts", "h1:1,h2:1", "-e", "TOKEN", file)
	r.cmd.Dir, r.cmd.Env = bed.Shared(), append(r.cmd.Env, "TOKEN="+aSecret)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = person.tty, person.tty, person.tty
	if err := r.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer close(r.exited)
		_ = r.cmd.Wait() // the exit code is in ProcessState
		r.ended = time.Now()
	}()
	t.Cleanup(func() {
		cancel()
		<-r.exited
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", person.shown.String())
		}
	})
	if !r.await("the question for the passphrase", person.asks) {
		t.Fatal("gangrun has ended")
	}
	if _, err := person.master.WriteString(testhosts.Passphrase + "\n"); err != nil {
		t.Fatal(err)
	}
	if !r.await("two ranks", func() bool {
		ready, _ := filepath.Glob(filepath.Join(bed.Shared(), "ready.*"))
		return len(ready) == 2
	}) {
		t.Fatal("gangrun has ended")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}

	ranks := 0
	for i, uid := range []int{0, alice} {
		ranks += r.hidden(bed.Host(i+1), uid, secrets)
	}
	if ranks < 2 {
		t.Errorf("%d processes have the secret in their environment, want the ranks", ranks)
	}
	mine, err := ctl.Processes("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range mine {
		holdsNone(t, "ps on the controller", []byte(p.String()), secrets)
	}

	if err := os.WriteFile(filepath.Join(bed.Shared(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := r.finish(); code != 3 {
		t.Errorf("exit code %d, want that of rank 1", code)
	}
	r.nothingLeft()
	for _, h := range bed.Hosts() {
		nowhere(t, h, secrets)
	}
	for _, command := range [][]string{{"status"}, {"status", "-o", "json"}, {"ps", "-o", "json"}, {"leases"}} {
		out, err := ctl.Exec(context.Background(), append([]string{gangrun}, command...)...)
		if err != nil {
			t.Error(err)
		}
		holdsNone(t, "gangrun "+strings.Join(command, " "), []byte(out), secrets)
	}
	holdsNone(t, "the terminal", []byte(person.shown.String()), secrets)
	hidden, printed := 0, 0
	err = filepath.WalkDir(ctl.Home(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".ssh":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.HasPrefix(d.Name(), "rank-") { // the log has what the rank has printed
			printed += bytes.Count(data, []byte(aSecret))
			return err
		}
		hidden += bytes.Count(data, []byte(job.Hidden))
		holdsNone(t, path, data, secrets)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if hidden == 0 || printed != 2 {
		t.Errorf("%d secrets are hidden and %d are in the log, want some and 2: this tests nothing", hidden, printed)
	}
}

// holdsNone checks that data has none of the secrets. where says where the data was found.
func holdsNone(t *testing.T, where string, data []byte, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if bytes.Contains(data, []byte(s)) {
			t.Errorf("%s holds %q", where, s)
		}
	}
}

// nowhere checks that no file of a host has a secret.
func nowhere(t *testing.T, h *testhosts.Host, secrets []string) {
	t.Helper()
	script := `find /tmp /var/tmp /run /root /home /dev/shm /srv /var/log -type f -size -20000k -exec grep -lF -e "$0" {} + ; true`
	for _, s := range secrets {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		out, err := h.Exec(ctx, "sh", "-c", script, s)
		cancel()
		if err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("on %s, %q is in %q, %v", h.Name(), s, out, err)
		}
	}
}

// hidden checks what can be found on a host about a running run. uid is the user of the run on that host. It returns
// how many processes there have the secret in their environment.
func (r *farRun) hidden(h *testhosts.Host, uid int, secrets []string) (knowing int) {
	t := r.t.(*testing.T)
	nowhere(t, h, secrets)
	all, err := h.Processes("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		holdsNone(t, "ps on "+h.Name(), []byte(p.String()), secrets)
		path := fmt.Sprintf("/proc/%d/environ", p.PID)
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte(aSecret)) {
			continue
		}
		knowing++
		var info unix.Stat_t
		if err := unix.Stat(path, &info); err != nil || int(info.Uid) != uid || info.Mode&0o077 != 0 {
			t.Errorf("on %s, user %d may read the environment of %s: mode %#o, %v", h.Name(), info.Uid, p, info.Mode, err)
		}
		if name := p.Args[min(1, len(p.Args)-1)]; name == "agent" || name == "bridge" {
			t.Errorf("on %s, the secret is in the environment of %s", h.Name(), p)
		}
	}

	agent := slices.IndexFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindHost && e.Host == h.Name() })
	if agent < 0 {
		t.Fatalf("the journal tells of no agent on %s", h.Name())
	}
	dir := filepath.Join(fmt.Sprintf("/tmp/gangrun-%d", uid), r.events()[agent].Agent.Token)
	program := filepath.Dir(r.events()[agent].Agent.Program)
	listing, err := actAs(t, h, 0, "find", filepath.Dir(dir), filepath.Dir(program), "-printf", `%y %m %U %p\n`)
	if err != nil {
		t.Fatal(err)
	}
	// The program, and the output of ranks, are in directories that only the user can enter. All other files must be
	// accessible only to the user themselves.
	line := regexp.MustCompile(`^(.) (\d+) (\d+) (.*)$`)
	found := map[string]bool{}
	for _, text := range strings.Split(strings.TrimSpace(listing), "\n") {
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%q of find", text)
		}
		found[m[4]] = true
		mode, err := strconv.ParseUint(m[2], 8, 32)
		protected := m[4] == filepath.Join(program, "gangrun") || strings.HasPrefix(m[4], dir+"/logs/")
		if err != nil || m[3] != strconv.Itoa(uid) || m[1] == "d" && mode != 0o700 || m[1] != "d" && !protected && mode != 0o600 {
			t.Errorf("on %s: %s", h.Name(), text)
		}
	}
	for _, name := range []string{"", "socket", "lock", "log", "logs"} {
		if path := filepath.Join(dir, name); !found[path] {
			t.Errorf("on %s there is no %s among %q", h.Name(), path, listing)
		}
	}
	if !found[program] || !found[filepath.Join(program, "gangrun")] {
		t.Errorf("on %s the program is not among %q", h.Name(), listing)
	}

	could, seen := meddling(t, h, bob, uid, dir, h.Name())
	if len(could) > 0 || seen < 2 {
		t.Errorf("on %s, another user sees %d processes of the agent, and can: %q", h.Name(), seen, could)
	}
	if could, seen = meddling(t, h, uid, uid, dir, h.Name()); len(could) != 14 || seen < 2 {
		t.Errorf("on %s, the user sees %d processes, and can %q: this tests nothing", h.Name(), seen, could)
	}
	// If another user runs gangrun from a place that both users can read, it must not find the agent.
	program = filepath.Join(r.bed.Shared(), "gangrun")
	data, err := os.ReadFile(r.gangrun)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, program, data)
	if out, err := actAs(t, h, bob, program, "bridge", "join", filepath.Base(dir)); err == nil || !strings.Contains(out, "gangrun bridge: gone ") {
		t.Errorf("on %s, another user's bridge says %q, %v", h.Name(), out, err)
	}
	// No other process than sshd may listen on the host.
	listens, err := actAs(t, h, bob, "sh", "-c", `cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" && $2 !~ /:0016$/'; awk '$8 ~ /^@/' /proc/net/unix`)
	if err != nil || strings.TrimSpace(listens) != "" {
		t.Errorf("on %s there listens %q, %v", h.Name(), listens, err)
	}
	return knowing
}
