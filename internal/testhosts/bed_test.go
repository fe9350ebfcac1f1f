package testhosts

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ssh runs a command on a host through the controller's ssh.
func ssh(t *testing.T, b *Bed, h *Host, command string) string {
	t.Helper()
	out, err := b.Controller().Exec(t.Context(), "ssh", h.Name(), command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUp(t *testing.T) {
	b := Up(t, 4)
	for _, h := range b.Hosts() {
		if out := ssh(t, b, h, "hostname"); out != h.Name()+"\n" {
			t.Errorf("%s calls itself %q", h.Name(), out)
		}
	}
}
