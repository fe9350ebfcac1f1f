package suite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// contained: a gang whose file changes are discarded reads input, prints, fails and ends like any other gang. Its
// agents can run another gang after it.
func contained(t *testing.T, b Bed) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := w.WriteString("fed\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	g := b.gang(t, options{ranks: 2, hosts: 2, stdin: r, feeds: job.StdinRank(1), show: job.OutputAll,
		command: sh(`ls -A checkpoints; echo x >made && echo x >checkpoints/step && rm kept && cat && echo rank {{.Rank}} && echo words >&2`)})
	dir := g.attempt.Workdir
	for _, name := range []string{"kept", "checkpoints/step-1"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("as it was"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g.attempt.LogDir = filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(g.attempt.LogDir, 0o755); err != nil {
		t.Fatal(err)
	}
	checkpoints := filepath.Join(dir, "checkpoints")
	g.attempt.Number, g.attempt.CheckpointDir = 0, checkpoints
	g.attempt.Contain = &job.Containment{Work: []string{dir}, Empty: checkpoints}
	if o := g.run(t.Context()); !o.Good(2) {
		t.Fatalf("%+v\n%s%s", o, g.log(0, "err"), g.log(1, "err"))
	}
	for rank, want := range []string{"rank 0\n", "fed\nrank 1\n"} {
		if out, errs := g.log(rank, "out"), g.log(rank, "err"); out != want || errs != "words\n" {
			t.Errorf("the logs of rank %d are %q and %q", rank, out, errs)
		}
		g.await("what is shown of its output", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.output[rank] != nil && len(g.output[rank].String()) == len(want+"words\n")
		})
	}
	for name, want := range map[string]bool{"made": false, "checkpoints/step": false, "kept": true, "checkpoints/step-1": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}

	// If a rank is killed, the other ranks end. If the gang is cancelled, it ends. In both cases, its strays end, too.
	sleeper := `echo ready; (setsid sleep 1000 &); while :; do sleep 1; done`
	for name, end := range map[string]func(cancel context.CancelFunc){
		"killed":    func(context.CancelFunc) { _ = unix.Kill(g.pid(1), unix.SIGKILL) },
		"cancelled": func(cancel context.CancelFunc) { cancel() },
	} {
		g.again(name, sleeper)
		ctx, cancel := context.WithCancel(t.Context())
		wait := g.start(ctx)
		g.await("what the ranks say", func() bool {
			return strings.HasPrefix(g.log(0, "out"), "ready") && strings.HasPrefix(g.log(1, "out"), "ready")
		})
		end(cancel)
		o := wait()
		cancel()
		if e := exitOf(t, o, 1); len(o.Unreaped) > 0 || e.Stopped != (name == "cancelled") {
			t.Errorf("%s: %+v", name, o)
		}
		g.noneLeft()
	}

	// The file changes of the next gang are kept.
	g.again("1", `echo x >made; cat checkpoints/step-1`)
	g.attempt.Number, g.attempt.Contain = 1, nil
	if o := g.run(t.Context()); !o.Good(2) || g.log(0, "out") != "as it was" {
		t.Errorf("%+v, %q", o, g.log(0, "out"))
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// again prepares the gang to run once more, with another name and another shell command.
func (g *gang) again(name, command string) {
	g.t.Helper()
	g.mu.Lock()
	g.events = nil
	g.mu.Unlock()
	g.attempt.Run, g.attempt.Stdin = "test-"+name, job.StdinNone
	g.attempt.Command = sh(command)
	g.attempt.Grace = job.Duration(limit / 100)
	g.attempt.LogDir = filepath.Join(filepath.Dir(g.attempt.LogDir), name)
	if err := os.Mkdir(g.attempt.LogDir, 0o755); err != nil {
		g.t.Fatal(err)
	}
}
