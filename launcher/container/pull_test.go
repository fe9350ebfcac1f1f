package container_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testimage"
	"github.com/gangrun/gangrun/launcher/container"
)

func TestPull(t *testing.T) {
	b := newBed(t)
	host := testimage.Registry(t, "me", "hidden-secret")
	name := testimage.Busybox(t).Push(t, host, "team/image:1", "me", "hidden-secret")
	image, err := b.runtime.Pull(t.Context(), name, container.Credentials{User: "me", Secret: "hidden-secret"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.runtime.Unpack(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	if got := b.output(t, container.Spec{Image: image}, "echo $FROM_IMAGE"); got != "yes" {
		t.Errorf("got %q", got)
	}
	for user, secret := range map[string]string{"": "", "me": "wrong-secret"} {
		_, err := b.runtime.Pull(t.Context(), strings.Replace(name, ":1", ":2", 1), container.Credentials{User: user, Secret: secret})
		if e, ok := errors.AsType[*container.PullError](err); !ok || !e.Refused || strings.Contains(err.Error(), "secret") {
			t.Errorf("user %q: got %v", user, err)
		}
	}
	_, err = b.runtime.Pull(t.Context(), strings.Replace(name, ":1", ":2", 1), container.Credentials{User: "me", Secret: "hidden-secret"})
	if e, ok := errors.AsType[*container.PullError](err); !ok || !e.Missing {
		t.Errorf("got %v", err)
	}
	_, err = b.runtime.Pull(t.Context(), "127.0.0.1:1/team/image:1", container.Credentials{})
	if e, ok := errors.AsType[*container.PullError](err); !ok || e.Missing || e.Refused {
		t.Errorf("got %v", err)
	}
}
