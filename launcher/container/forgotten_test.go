package container_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/launcher/container"
)

// TestForgotten checks a container whose shim does not answer when containerd starts again. containerd then forgets
// the shim, but the container and the shim must end. At the end of the test, internal/testcontainerd checks that
// nothing is left.
func TestForgotten(t *testing.T) {
	b := newBed(t)
	c, err := b.runtime.Start(t.Context(), container.Spec{ID: "gangrun-forgotten", Image: b.image, Args: []string{"/bin/sleep", "1000"}, Log: t.TempDir() + "/log"})
	if err != nil {
		t.Fatal(err)
	}
	shims := b.Shims()
	if len(shims) != 1 {
		t.Fatalf("there are %d shims", len(shims))
	}
	if err := unix.Kill(shims[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.Kill()
	b.Restart() // containerd answers when it has given up the shim
	if err := unix.Kill(shims[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.End(ctx); err != nil {
		t.Error(err)
	}
	for len(b.Shims()) > 0 { // containerd may still run the command "delete" of the shim
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the shims %d are left", b.Shims())
		}
	}
}
