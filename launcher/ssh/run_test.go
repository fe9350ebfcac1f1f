package ssh

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

// TestRun checks that a program is installed, gets its arguments unchanged, runs until its connection is closed, and
// then ends.
func TestRun(t *testing.T) {
	s, c := hostIn(t, ":")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p := programOf([]byte("#!/bin/sh\ncase $1 in self-check) exit 0;; esac\necho $$ \"$#\" \"$@\"\ncat >/dev/null\necho over >\"$HOME/over\"\n"))
	a := &Agents{Dialer: client(s)}
	r, err := a.Run(t.Context(), "n1", p, "events", "GPU-a b", "$HOME")
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r.Stdout).ReadString('\n')
	if _, args, _ := strings.Cut(line, " "); err != nil || args != "3 events GPU-a b $HOME\n" {
		t.Errorf("it printed %q, %v", line, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(r.Stdout); err != nil && err != io.ErrClosedPipe {
		t.Logf("after the end: %v", err)
	}
	// The end of its input must end the program, too.
	c = dial(t, client(s), "n1")
	for deadline := time.Now().Add(time.Minute); ; {
		p, err := c.Run(t.Context(), `cat "$HOME/over"`)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(p.Stdout)
		_ = p.Close()
		if string(said) == "over\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not end")
		}
	}
	if _, err := a.Run(t.Context(), "nowhere", p); err == nil {
		t.Error("it runs on a host that does not exist")
	}
}
