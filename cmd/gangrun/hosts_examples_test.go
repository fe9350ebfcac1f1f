package main_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestHostsExamples runs the examples as users run them, with preflight and trial, on four hosts. No host has a key or
// knows the key of another host.
func TestHostsExamples(t *testing.T) {
	t.Parallel()
	needPython(t, "numpy, torch, mpi4py")
	bed := testhosts.Up(t, farHosts)
	for _, h := range bed.Hosts() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		found, err := h.Exec(ctx, "sh", "-c", `echo $SSH_AUTH_SOCK; grep -rl "PRIVATE KEY" ~ || true`)
		cancel()
		if err != nil || strings.TrimSpace(found) != "" {
			t.Fatalf("%s has keys: %q, %v", h.Name(), found, err)
		}
	}
	if err := os.CopyFS(filepath.Join(bed.Shared(), "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	ring := map[job.MPI]string{}
	for _, flavour := range mpiFlavours {
		ring[flavour] = filepath.Join(bed.Shared(), "ring."+string(flavour))
		data, err := os.ReadFile(mpiProgram(t, "../../examples/ring/ring.c", flavour))
		if err != nil {
			t.Fatal(err)
		}
		writeProgram(t, ring[flavour], data)
	}
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	const four, eight = "h1:1,h2:1,h3:1,h4:1", "h1:2,h2:2,h3:2,h4:2"
	rings := []string{"on h1, 2 here", "on h4, 2 here", "went round 8 ranks 50 times"}
	for _, test := range []struct {
		name  string
		args  []string
		wants []string // texts that the ranks must print
	}{
		{"digits, none", []string{"--hosts", four, "examples/digits/job.yaml", "--", python, "examples/digits/train.py", "--epochs=2"}, []string{"rank 3 weights sha256 "}},
		{"digits, openmpi", []string{"--hosts", four, "examples/digits-mpi/job.yaml", "--", python, "examples/digits-mpi/train.py", "--epochs=2"}, []string{"rank 3 weights sha256 "}},
		{"ring, openmpi", []string{"--hosts", eight, "-n", "8", "--mpi", "openmpi", "--", ring[job.MPIOpenMPI], "50", "4096"}, rings},
		{"ring, mpich", []string{"--hosts", eight, "-n", "8", "--mpi", "mpich", "--", ring[job.MPIMPICH], "50", "4096"}, rings},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &farRun{t: t, bed: bed, gangrun: gangrun}
			r.control(append([]string{"run", "--output", "none", "--retries", "0"}, test.args...)...)
			if code := r.finish(); code != 0 {
				t.Fatalf("exit code %d; gangrun said:\n%s", code, r.errs.String())
			}
			r.nothingLeft()
			attempt := r.report().Last()
			var said bytes.Buffer
			for rank := range attempt.Placement {
				said.Write(r.log(rank, "out"))
			}
			for _, want := range test.wants {
				if !strings.Contains(said.String(), want) {
					t.Errorf("nobody said %q:\n%s", want, said.String())
				}
			}
			hosts := map[string]bool{}
			for _, p := range attempt.Placement {
				hosts[p.Host] = true
			}
			if len(hosts) != farHosts {
				t.Errorf("the ranks were on %v, want all of %d hosts", hosts, farHosts)
			}
		})
	}
	for _, user := range []string{"root", "alice"} {
		t.Run("the trial leaves nothing, as "+user, func(t *testing.T) { trialOnHosts(t, bed, gangrun, user) })
	}
}

// loginAs makes alice the user of gangrun on the hosts of a bed until the test ends. If user is root, nothing changes.
func loginAs(t *testing.T, bed *testhosts.Bed, user string) {
	t.Helper()
	if user != "alice" {
		return
	}
	ctl := bed.Controller()
	before, err := os.ReadFile(ctl.SSHConfig())
	if err == nil {
		own := "Host h1 h2\n\tUser alice\n\tIdentityFile " + ctl.Key("id_alice") + "\n\tIdentitiesOnly yes\n"
		err = os.WriteFile(ctl.SSHConfig(), append([]byte(own), before...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(ctl.SSHConfig(), before, 0o600); err != nil {
			t.Error(err)
		}
	})
}

// trialOnHosts runs a trial on two hosts as one of their users. The trial writes into the directory that the hosts
// share, into the home directory, and into directories for temporary files.
func trialOnHosts(t *testing.T, bed *testhosts.Bed, gangrun, user string) {
	loginAs(t, bed, user)
	dir := filepath.Join(bed.Shared(), "trial-"+user)
	files := map[string]string{filepath.Join(dir, "kept"): "as it was\n", filepath.Join(dir, "checkpoints/step-1"): "as it was\n"}
	for _, d := range []string{dir, filepath.Join(dir, "checkpoints")} {
		if err := errors.Join(os.Mkdir(d, 0o777), os.Chmod(d, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o666), os.Chmod(path, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	r := &farRun{t: t, bed: bed, gangrun: gangrun}
	r.control("run", "--hosts", "h1:1,h2:1", "-n", "2", "--mpi", "none", "--trial-ranks", "2", "--output", "none", "--workdir", dir,
		"--checkpoint-dir", filepath.Join(dir, "checkpoints"), "--", "sh", "-ec", `test $GANGRUN_ATTEMPT = 1 && exit
			ls -A "$GANGRUN_CHECKPOINT_DIR"; id -un; echo x >made; rm kept; echo x >"$GANGRUN_CHECKPOINT_DIR"/step-2; echo x >~/trial.made
			for dir in /tmp /var/tmp /dev/shm; do echo x >$dir/trial.made; done`)
	if code := r.finish(); code != 0 || strings.Contains(r.errs.String(), "warning") || !strings.Contains(r.errs.String(), "(exit 0)") {
		t.Fatalf("exit code %d; gangrun said:\n%s", code, r.errs.String())
	}
	for rank := range 2 {
		if out, err := os.ReadFile(filepath.Join(r.home(), "attempts/trial", job.LogName(rank, "out"))); err != nil || string(out) != user+"\n" {
			t.Errorf("rank %d of the trial said %q, %v, want %q", rank, out, err, user)
		}
	}
	for path, text := range files {
		if have, err := os.ReadFile(path); err != nil || string(have) != text {
			t.Errorf("%s holds %q, %v", path, have, err)
		}
	}
	for _, h := range bed.Hosts()[:2] {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		found, err := h.Exec(ctx, "sh", "-c", `find / -xdev -name trial.made 2>/dev/null; find /tmp /var/tmp /dev/shm /root /home "$0" -name trial.made -o -name made 2>/dev/null; mount | grep overlay | grep -v gangrun-ctd- || true`, dir)
		cancel()
		if err != nil || strings.TrimSpace(found) != "" {
			t.Errorf("left on %s: %q, %v", h.Name(), found, err)
		}
	}
}
