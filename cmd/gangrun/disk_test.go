package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// inShell returns a command that runs gangrun after a script, in a mount namespace of its own. The script may mount
// file systems there, also over gangrun's home.
func (b *bench) inShell(script string, args ...string) *exec.Cmd {
	b.t.Helper()
	namespaces := []string{"--mount", "--propagation", "private"}
	if os.Geteuid() != 0 {
		namespaces = append(namespaces, "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(namespaces, "mount", "-t", "tmpfs", "none", b.dir)...).CombinedOutput(); err != nil {
		noskip.Skip(b.t, "no file system can be mounted here: %v: %s", err, out)
	}
	cmd := b.command(args...)
	cmd.Path = "/usr/bin/unshare"
	cmd.Args = append(append([]string{"unshare"}, namespaces...), append([]string{"sh", "-c", script + "\nexec \"$0\" \"$@\"", b.binary}, args...)...)
	return cmd
}

// ends runs a command and returns its exit code and its output. It fails the test if the command does not end, or
// leaves processes.
func (b *bench) ends(cmd *exec.Cmd) (code int, said string) {
	b.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, _ := cmd.CombinedOutput() // the exit code is in ProcessState
		said = string(out)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-done
		b.t.Fatalf("gangrun has not ended within %s, and said:\n%s", patience, said)
	}
	if left := b.marked(); len(left[ownMark]) > 0 {
		b.t.Errorf("processes are left: %v", left[ownMark])
	}
	return cmd.ProcessState.ExitCode(), said
}

// TestNoInodes makes the file system run out of inodes at every moment of a run. TestSoakNoInodes also tries the other
// preflights.
func TestNoInodes(t *testing.T) {
	t.Parallel()
	for dir, preflight := range map[string]string{"home": "full", "TMPDIR": "off"} {
		t.Run(dir+"/"+preflight, func(t *testing.T) {
			t.Parallel()
			noInodes(t, dir, preflight)
		})
	}
}

// noInodes runs a job again and again, each time with one inode more in gangrun's home or in TMPDIR, until the job
// succeeds. Until then, gangrun must report disk-full and name the directory. Its exit code must not say that a host
// is missing or that the program is at fault.
func noInodes(t *testing.T, name, preflight string) {
	t.Helper()
	mounted := map[string]string{"home": "home", "TMPDIR": "tmp"}[name]
	well := 0
	for inodes := 1; well < 2; inodes++ {
		if inodes > 100 {
			t.Fatal("no number of inodes is enough")
		}
		b := newBench(t)
		dir := filepath.Join(b.dir, mounted)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		code, said := b.ends(b.inShell(fmt.Sprintf("mount -t tmpfs -o nr_inodes=%d none %s", inodes, dir),
			"run", "--preflight", preflight, "--retries", "0", "--loopback", "2", "-n", "2", "--", "sh", "-c", "echo hello"))
		full := strings.Contains(said, "no space left on device")
		switch {
		case strings.Contains(said, "panic"):
			t.Errorf("%d inodes: gangrun panicked:\n%s", inodes, said)
		case code == 0 && !full:
			well++
			continue
		case code == 0 && name == "TMPDIR" && strings.Contains(said, "left out: disk-full: mkdir "+dir):
			continue // the run could do without one of the two hosts
		case code == 0 && name == "home" && (strings.Contains(said, "is not in the history: disk-full: ") || strings.Contains(said, "the page of the run could not be written: disk-full: ")):
			continue // the records of the run itself are complete
		case code != exitcode.MayPass && code != exitcode.Failed && code != exitcode.Inputs:
			t.Errorf("%d inodes: exit code %d", inodes, code)
		}
		if !full || !strings.Contains(said, "disk-full") || !strings.Contains(said, dir) || !strings.Contains(said, "hint") {
			t.Errorf("%d inodes: no word of what is full, where, or of what to do:\n%s", inodes, said)
		}
		for _, wrong := range []string{"launch-error", "no host can be reached", "rpc error"} {
			if strings.Contains(said, wrong) {
				t.Errorf("%d inodes: gangrun says %q:\n%s", inodes, wrong, said)
			}
		}
	}
}

// TestRefusals checks what gangrun says when a file system refuses other operations of gangrun itself.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const quiet = `cat /dev/zero >"$GANGRUN_HOME/fill" 2>/dev/null; exit 0`
	for _, test := range []struct {
		name, script string
		args         []string
		code         int
		said         []string
	}{
		{"full from the beginning", "mount -t tmpfs -o size=64k none home; cat /dev/zero >home/fill 2>/dev/null",
			[]string{"-n", "1", "--", "true"}, exitcode.MayPass, []string{"gangrun: error: disk-full: cannot keep the run's records: ", "/home/runs", "gangrun: hint: "}},
		{"read-only", "mount -t tmpfs -o ro none home",
			[]string{"-n", "1", "--", "true"}, exitcode.MayPass, []string{"gangrun: error: output-error: cannot keep the run's records: ", "read-only file system", "gangrun: hint: "}},
		{"the journal of a gang that ends well has no room", "mount -t tmpfs -o size=1m none home",
			[]string{"--preflight", "off", "--hosts", "localhost:32", "-n", "32", "--", "sh", "-c", quiet}, exitcode.MayPass, []string{
				"gangrun: error: disk-full: the journal has gaps: ", "/journal.jsonl: no space left on device", "gangrun: hint: free space", "exit code  75"}},
		{"a rank's log has no room", "mount -t tmpfs -o size=1m none home",
			[]string{"--preflight", "off", "--retries", "0", "-n", "2", "--", "sh", "-c", "head -c 4M /dev/zero"}, exitcode.Failed, []string{
				"cause    disk-full (no-space)", "/attempts/1/rank-000", "no space left on device"}},
		{"a rank's log reaches a limit", "ulimit -f 256",
			[]string{"--preflight", "off", "--retries", "0", "-n", "2", "--", "python3", "-c", "print('x' * 4000000)"}, exitcode.Failed, []string{
				"cause    output-error (file-size-limit)", "/attempts/1/rank-000", "file too large"}},
		{"the log of a trial's rank reaches a limit", "ulimit -f 256",
			[]string{"--retries", "0", "-n", "2", "--", "python3", "-c", "print('x' * 4000000)"}, exitcode.Inputs, []string{
				"error: trial on ", "output-error: ", "/attempts/trial/rank-000", "file too large"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if err := os.Mkdir(filepath.Join(b.dir, "home"), 0o700); err != nil {
				t.Fatal(err)
			}
			code, said := b.ends(b.inShell(test.script, append([]string{"run"}, test.args...)...))
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.said {
				if !strings.Contains(said, want) {
					t.Errorf("gangrun did not say %q", want)
				}
			}
			if t.Failed() {
				t.Logf("gangrun said:\n%s", said)
			}
		})
	}
}

// TestRefusedLogReport checks that the report also names the reason.
func TestRefusedLogReport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ends(b.inShell("ulimit -f 256", "run", "--preflight", "off", "--retries", "0", "-n", "1", "--", "python3", "-c", "print('x' * 4000000)"))
	var report runreport.Report
	decode(t, b.ask("report", "-o", "json"), &report)
	if c := report.Cause(); c == nil || c.Category != job.OutputError || c.Signature != "file-size-limit" || !strings.Contains(c.Text, "file too large") {
		t.Errorf("the cause is %+v", c)
	}
}
