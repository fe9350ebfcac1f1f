package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/launcher/container"
)

func TestUnavailable(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "socket"), filepath.Join(dir, "other")
	open := func(sockets ...string) *container.UnavailableError {
		t.Helper()
		r, err := container.Open(t.Context(), sockets...)
		e, ok := errors.AsType[*container.UnavailableError](err)
		if !ok || r != nil {
			t.Fatalf("got %v, %v", r, err)
		}
		return e
	}
	if e := open(file); !e.Missing || e.Forbidden || e.Error() != "there is no containerd here: "+file+" does not exist" {
		t.Errorf("got %v", e)
	}
	if e := open(file, other); !e.Missing || e.Error() != "there is no containerd here: none of "+file+" and "+other+" exists" {
		t.Errorf("got %v", e)
	}
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := open(file, other); e.Missing || e.Forbidden || !strings.HasPrefix(e.Error(), "containerd does not answer at "+other) {
		t.Errorf("got %v", e)
	}
	d := testcontainerd.Start(t)
	r, err := container.Open(t.Context(), file, d.Socket)
	if err != nil || r.Socket != d.Socket || r.Version == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	_ = r.Close()
}

func TestSockets(t *testing.T) {
	env := map[string]string{"CONTAINERD_ADDRESS": "unix:///run/mine.sock"}
	if got := container.Sockets(func(name string) string { return env[name] }); !slices.Equal(got, []string{"/run/mine.sock"}) {
		t.Errorf("got %q", got)
	}
	delete(env, "CONTAINERD_ADDRESS")
	if got := container.Sockets(func(name string) string { return env[name] }); !slices.Contains(got, "/run/containerd/containerd.sock") || len(got) < 3 {
		t.Errorf("got %q", got)
	}
}
