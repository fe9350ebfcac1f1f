package ssh

import (
	"testing"
)

func TestDial(t *testing.T) {
	s, _ := oneHost(t)
	c := dial(t, s.dialer(), "n1")
	if got := output(t, c, "echo hello"); got != "hello\n" {
		t.Errorf("echo says %q", got)
	}
}
