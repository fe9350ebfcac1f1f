package container_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/container"
)

// TestRemoveUnused checks that images that gangrun has brought are removed if no container uses them.
func TestRemoveUnused(t *testing.T) {
	b := newBed(t)
	names := func(before time.Time) string {
		t.Helper()
		removed, err := b.runtime.RemoveUnused(t.Context(), before)
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, image := range removed {
			if names = append(names, image.Name); image.Bytes == 0 || time.Since(image.Used) > time.Minute {
				t.Errorf("%+v", image)
			}
		}
		return strings.Join(names, " ")
	}
	if out, err := exec.Command("ctr", "-a", b.Socket, "-n", container.Namespace, "images", "tag", b.image.Name, "gangrun.local/mine:1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := names(time.Now().Add(-time.Hour)); got != "" {
		t.Errorf("%s was used a moment ago", got)
	}
	c, err := b.start(t, container.Spec{}, "sleep 100")
	if err != nil {
		t.Fatal(err)
	}
	if got := names(time.Now().Add(time.Hour)); strings.Contains(got, b.image.Name) {
		t.Errorf("%s has a container", got)
	}
	if err := c.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(time.Now().Add(time.Hour)); got != b.image.Name {
		t.Errorf("removed %q, want %q", got, b.image.Name)
	}
	_, err = b.runtime.Find(t.Context(), b.image.Name)
	if _, ok := errors.AsType[*container.MissingError](err); !ok {
		t.Errorf("got %v", err)
	}
}
