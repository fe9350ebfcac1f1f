package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// TestMain makes the test binary serve as the program bed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == bedName {
		os.Exit(ask(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func TestRunGivesACommandTheHosts(t *testing.T) {
	testhosts.Need(t)
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	code, err := run(t.Context(), setup{hosts: 2}, `set -e
		exec >"$OUT" 2>&1
		ssh h2 hostname
		open() { timeout "$1" bash -c '</dev/tcp/h1/22'; }
		bed cut h1
		if open 1 2>/dev/null; then echo "h1 is not cut off"; fi
		bed restore h1
		open 60
		bed poweroff h1
		bed boot h1
		ssh h1 hostname
		bed loss h3 20 || bed loss h1 many || bed dance h1 || bed cut || bed | head -n 1
		exit 7`)
	if err != nil || code != 7 {
		t.Errorf("exit code %d and error %v, want 7 and none", code, err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := `h2
h1
bed: there is no host "h3": take h1 to h2
bed: "many" is no number of percent: take 0 to 100
bed: there is no action "dance": run bed without words to see them
bed: 1 words are too many or too few: it is bed cut HOST
usage: bed ACTION HOST [ARGUMENT]
`
	if string(got) != want {
		t.Errorf("the command wrote:\n%swant:\n%s", got, want)
	}
}

func TestRunEndsAsItsCommandDoes(t *testing.T) {
	testhosts.Need(t)
	code, err := run(t.Context(), setup{hosts: 1}, "kill -TERM $$")
	if err != nil || code != 128+15 {
		t.Errorf("exit code %d and error %v, want 143 and none", code, err)
	}
}

// TestRunWithSlurm runs a job of bob on a cluster after a node was switched off and on.
func TestRunWithSlurm(t *testing.T) {
	slurm.Need(t)
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	code, err := run(t.Context(), setup{hosts: 2, slurm: true}, `set -e
		exec >"$OUT" 2>&1
		bed kill h2
		bed boot h2
		bob srun -N2 sh -c 'echo $(id -un) $(hostname)' | sort
		bob ssh -o BatchMode=yes h1 true 2>/dev/null || echo refused`)
	if err != nil || code != 0 {
		t.Errorf("exit code %d and error %v, want none", code, err)
	}
	got, err := os.ReadFile(out)
	if want := "bob h1\nbob h2\nrefused\n"; err != nil || string(got) != want {
		t.Errorf("the command wrote %q, want %q; %v", got, want, err)
	}
}

// TestRunWithContainerd kills the containerd of a host, starts it again, and boots another host.
func TestRunWithContainerd(t *testing.T) {
	testhosts.Need(t)
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	code, err := run(t.Context(), setup{hosts: 2, options: []testhosts.Option{testhosts.Containerd()}}, `
		exec >"$OUT" 2>&1
		answers() { ssh "$1" timeout 20 ctr version >/dev/null 2>&1 && echo "$1 answers" || echo "$1 is silent"; }
		answers h1
		bed kill-containerd h1
		answers h1
		bed start-containerd h1
		answers h1
		bed kill h2
		bed boot h2
		answers h2
		bed kill-shims h2`)
	if err != nil || code != 0 {
		t.Errorf("exit code %d and error %v, want none", code, err)
	}
	got, err := os.ReadFile(out)
	if want := "h1 answers\nh1 is silent\nh1 answers\nh2 answers\n"; err != nil || string(got) != want {
		t.Errorf("the command wrote %q, want %q; %v", got, want, err)
	}
}

func TestEveryActionIsListed(t *testing.T) {
	list := usage()
	for _, a := range actions {
		if !strings.Contains(list, "  "+a.name+" HOST") || a.do == nil || a.text == "" {
			t.Errorf("%s is not whole", a.name)
		}
	}
}
