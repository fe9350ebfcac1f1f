package ssh

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// controlled is a run whose controller is on the controller's machine of a bed.
type controlled struct {
	t     *testing.T
	bed   *testhosts.Bed
	cmd   *exec.Cmd
	said  sshtest.Log
	ended chan struct{}
}

// control starts "gangrun run" on hosts of a bed. The two ranks write a file and then sleep.
func control(t *testing.T, bed *testhosts.Bed, hosts string, flags ...string) *controlled {
	t.Helper()
	gangrun(t)
	r := &controlled{t: t, bed: bed, ended: make(chan struct{})}
	args := append([]string{
		filepath.Join(builds.dir, "gangrun"), "run", "--hosts", hosts, "-n", "2",
		"--mpi", "none", "--preflight", "off", "--output", "none", "--retries", "0",
	}, flags...)
	r.cmd = bed.Controller().Command(t.Context(), append(args, "--", "sh", "-c", ">started.$RANK; exec sleep 1000")...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = bed.Shared(), &r.said, &r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = r.cmd.Wait(); close(r.ended) }) // the exit code is in ProcessState
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		waiting.Wait()
	})
	return r
}

func (r *controlled) started() []string {
	found, _ := filepath.Glob(filepath.Join(r.bed.Shared(), "started.*"))
	return found
}

// await waits until done returns true.
func (r *controlled) await(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(sshtest.Longest); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within %s; gangrun said:\n%s", what, sshtest.Longest, r.said.String())
		}
	}
}

// end waits for the end of the controller. It must exit with code, and its output must have all words.
func (r *controlled) end(code int, words ...string) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(sshtest.Longest):
		r.t.Fatalf("gangrun does not end; it said:\n%s", r.said.String())
	}
	said := r.said.String()
	for _, word := range words {
		if !strings.Contains(said, word) {
			r.t.Errorf("it did not say %q", word)
		}
	}
	if got := r.cmd.ProcessState.ExitCode(); got != code || r.t.Failed() {
		r.t.Errorf("it ended with code %d, want %d, and said:\n%s", got, code, said)
	}
}

// TestHostUnderTwoNames checks that a host with two names is refused before anything of the job has started. The error
// must have both names.
func TestHostUnderTwoNames(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	config := bed.Controller().SSHConfig()
	own, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	settings := own[bytes.IndexByte(own, '\n'):] // the settings for h*, without the Host line
	alias := "Host other\n  HostName " + bed.Host(1).Addr().String() + "\n  HostKeyAlias h1" + string(settings)
	if err := os.WriteFile(config, []byte(alias+"\n"+string(own)), 0o600); err != nil {
		t.Fatal(err)
	}
	for hosts, names := range map[string]string{
		"h1,other":                                     "h1 and other are one machine",
		"h2,h1," + bed.Host(1).Addr().String():         "h1 and " + bed.Host(1).Addr().String() + " are one machine",
		"other," + bed.Host(1).Addr().String() + ",h1": "other, " + bed.Host(1).Addr().String() + " and h1 are one machine",
	} {
		r := control(t, bed, hosts)
		r.end(69, names, "name it once, with as many slots")
		if files := r.started(); len(files) > 0 {
			t.Errorf("%s: ranks were started: %q", hosts, files)
		}
	}
}

// TestHostStartedAnew checks a host that was booted again with a new home and /tmp, and so without gangrun. gangrun
// must find out that the agent is gone, and why.
func TestHostStartedAnew(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	r := control(t, bed, "h1,h2", "--host-timeout", sshtest.Longest.String())
	r.await("both ranks", func() bool { return len(r.started()) == 2 })
	if err := bed.Host(2).Poweroff(); err != nil {
		t.Fatal(err)
	}
	if err := bed.Host(2).Boot(); err != nil {
		t.Fatal(err)
	}
	r.end(75, "host-lost (host-restarted)", errHostAnew.Error())
}

// TestHurryWithSilentHost: a run that is ended twice does not wait for a host that is silent, and
// reports until when the host may have ranks.
func TestHurryWithSilentHost(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	const grace = 30 * time.Second
	r := control(t, bed, "h1,h2", "--host-timeout", grace.String(), "--orphan-grace", grace.String())
	r.await("both ranks", func() bool { return len(r.started()) == 2 })
	if err := bed.Host(2).Cut(); err != nil {
		t.Fatal(err)
	}
	r.await("that h2 is silent", func() bool { return strings.Contains(r.said.String(), "h2 is silent") })
	for _, again := range []string{"ending the gang: cancelled by SIGTERM", "told to end the gang at once"} {
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.await(again, func() bool { return strings.Contains(r.said.String(), again) })
	}
	hurried := time.Now()
	r.end(143, "h2 may still have ranks until ", "1 rank may still be running on h2")
	// Only then does the host count as lost, and gangrun waits as long again for its ranks.
	if took := time.Since(hurried); took > grace {
		t.Errorf("it ended %s after it was told to end at once", took)
	}
	r.await("the end of the ranks on h2", func() bool {
		left, err := bed.Host(2).Processes("GANGRUN_RUN")
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	})
}
