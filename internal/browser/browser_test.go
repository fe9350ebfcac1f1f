package browser

import (
	"errors"
	"slices"
	"testing"
)

func TestCommand(t *testing.T) {
	look := func(name string) (string, error) {
		if name == "missing" {
			return "", errors.New("not found")
		}
		return "/bin/" + name, nil
	}
	const page = "/home/a b/$(touch x)/report.html"
	for _, c := range []struct {
		name, system string
		env          map[string]string
		want         []string
	}{
		{"no display", "linux", nil, nil},
		{"X11", "linux", map[string]string{"DISPLAY": ":0"}, []string{"/bin/xdg-open", page}},
		{"Wayland", "linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"/bin/xdg-open", page}},
		{"macOS", "darwin", nil, []string{"/bin/open", page}},
		{"BROWSER without a display", "linux", map[string]string{"BROWSER": "w3m"}, []string{"/bin/w3m", page}},
		{"BROWSER before the desktop", "linux", map[string]string{"BROWSER": "w3m", "DISPLAY": ":0"}, []string{"/bin/w3m", page}},
		{"the first that there is", "linux", map[string]string{"BROWSER": "missing:firefox --new-tab %s:w3m"}, []string{"/bin/firefox", "--new-tab", page}},
		{"none that there is", "linux", map[string]string{"BROWSER": "missing"}, nil},
		{"words and no shell", "linux", map[string]string{"BROWSER": "echo ;  rm url=%s"}, []string{"/bin/echo", ";", "rm", "url=" + page}},
	} {
		getenv := func(name string) string { return c.env[name] }
		if have := Command(page, c.system, getenv, look); !slices.Equal(have, c.want) {
			t.Errorf("%s: %q, want %q", c.name, have, c.want)
		}
	}
}
