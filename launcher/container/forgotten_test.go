package container_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/launcher/container"
)

// TestForgotten: a containerd that starts again forgets a shim that does not answer. The container and
// its shim end all the same. (When the test ends, internal/testcontainerd looks for what is left.)
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
	b.Restart() // it answers when it has given up the shim
	if err := unix.Kill(shims[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.End(ctx); err != nil {
		t.Error(err)
	}
	for len(b.Shims()) > 0 { // containerd may still run the shim's command "delete"
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the shims %d are left", b.Shims())
		}
	}
}
