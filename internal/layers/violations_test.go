package layers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheckFindsViolations checks made-up packages with the project's own table.
func TestCheckFindsViolations(t *testing.T) {
	tests := []struct {
		name string
		pkgs []pkg
		want []string // the beginning of each line, in order
	}{
		{"lawful", []pkg{
			{path: "internal/job", outside: []string{"encoding/json", "time"}},
			{path: "internal/diagnose", ours: []string{"internal/job"}, outside: []string{"strings"}},
			{path: "internal/agent", ours: []string{"launcher/pmi1", "topology/probe", "internal/wire"}, outside: []string{"os/exec"}},
			{path: "launcher/pmi1", ours: []string{"internal/job"}},
			{path: "launcher/ssh", ours: []string{"launcher/agents", "internal/remote/sshclient"}},
			{path: "internal/remote/sshclient", outside: []string{"golang.org/x/crypto/ssh/knownhosts"}},
			{path: "launcher", ours: []string{"internal/wire"}},
			{path: "internal/testhosts/slurm", ours: []string{"internal/testhosts"}},
			{path: "cmd/gangrun", ours: []string{"internal/agent", "supervisor"}},
		}, nil},
		{"closed room", []pkg{{path: "internal/home", ours: []string{"internal/journal", "internal/wire"}}},
			[]string{"internal/home imports internal/wire; the row of internal/home says: of ours it imports only internal/failure, "}},
		{"room that imports none", []pkg{{path: "internal/screen", ours: []string{"internal/job"}}},
			[]string{"internal/screen imports internal/job; the row of internal/screen says: it imports none of ours"}},
		{"open room, a child of what is barred", []pkg{{path: "preflight", ours: []string{"launcher/local", "topology"}}},
			[]string{"preflight imports launcher/local; the row of preflight says: it does not import launcher/..., "}},
		{"siblings", []pkg{{path: "launcher/local", ours: []string{"launcher/ssh", "launcher/agents"}}},
			[]string{"launcher/local imports launcher/ssh; the row of launcher/local, launcher/ssh, "}},
		{"exception does not open the rest", []pkg{{path: "internal/agent", ours: []string{"launcher", "launcher/torch", "launcher/pmi1"}}},
			[]string{"internal/agent imports launcher; ", "internal/agent imports launcher/torch; "}},
		{"through another room", []pkg{
			{path: "supervisor", ours: []string{"internal/agent"}},
			{path: "internal/agent", ours: []string{"launcher/pmi1"}},
		}, []string{"supervisor reaches launcher/pmi1 through internal/agent; the row of supervisor says: "}},
		{"an unlawful import is told once", []pkg{
			{path: "supervisor", ours: []string{"internal/wire"}},
			{path: "internal/wire", ours: []string{"launcher"}},
		}, []string{"internal/wire imports launcher; "}},
		{"pure room", []pkg{{path: "internal/curve", outside: []string{"math", "net", "net/http", "net/netip", "os", "os/exec", "oslike"}}},
			[]string{"internal/curve imports net; ", "internal/curve imports net/http; ", "internal/curve imports os; ", "internal/curve imports os/exec; "}},
		{"clock", []pkg{{path: "internal/diagnose", clocks: []string{"rule.go:7: time.Now"}}, {path: "supervisor", clocks: []string{"loop.go:7: time.Now"}}},
			[]string{"internal/diagnose uses the clock, rule.go:7: time.Now; "}},
		{"exec in topology, not below", []pkg{{path: "topology", outside: []string{"os", "os/exec"}}, {path: "topology/probe", outside: []string{"os/exec"}}},
			[]string{"topology imports os/exec; "}},
		{"standard library only", []pkg{{path: "internal/job", outside: []string{"golang.org/x/sys/unix", "slices"}}},
			[]string{"internal/job imports golang.org/x/sys/unix; "}},
		{"reserved", []pkg{
			{path: "launcher/local", outside: []string{"golang.org/x/crypto/ssh", "golang.org/x/crypto/sha3"}},
			{path: "launcher/ssh", outside: []string{"github.com/containerd/containerd/v2/client"}},
			{path: "internal/agent", outside: []string{"C"}},
			{path: "internal/testhosts", ours: []string{"cmd/gangrun"}},
		}, []string{
			"launcher/local imports golang.org/x/crypto/ssh; golang.org/x/crypto/ssh/... is imported by internal/remote/sshclient, internal/remote/sshconfig, internal/remote/stepserver only",
			"launcher/ssh imports github.com/containerd/containerd/v2/client; ",
			"internal/agent imports C; ",
			"internal/testhosts imports cmd/gangrun; cmd/... is imported by none",
		}},
		{"unknown package", []pkg{{path: "internal/job/sub"}, {path: "."}},
			[]string{"internal/job/sub is in no room: give it a row in ", ". is in no room: "}},
		{"Go where none belongs", []pkg{{path: "internal/deps"}},
			[]string{"internal/deps holds a Go package; the row of internal/deps says: it holds no Go"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ours.check(test.pkgs)
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got:\n\t%s\nwant lines that begin:\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
		})
	}
}

func TestHeld(t *testing.T) {
	tests := []struct {
		patterns []string
		path     string
		want     bool
	}{
		{nil, "a", false},
		{[]string{"a"}, "a", true},
		{[]string{"a"}, "a/b", false},
		{[]string{"a/..."}, "a", true},
		{[]string{"a/..."}, "a/b/c", true},
		{[]string{"a/..."}, "ab", false},
		{[]string{"a/...", "!a/b"}, "a/b", false},
		{[]string{"a/...", "!a/b"}, "a/b/c", true},
		{[]string{"!a/b", "a/..."}, "a/b", true},
	}
	for _, test := range tests {
		if got := held(test.patterns, test.path); got != test.want {
			t.Errorf("held(%q, %q) = %t, want %t", test.patterns, test.path, got, test.want)
		}
	}
}

// TestReadTree reads a made-up module. Build tags and import names must not hide an import. Tests and testdata must be
// left out.
func TestReadTree(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                   "module " + module + "\n",
		"a/a.go":                   "package a\n\nimport (\n\t\"os\"\n\tx \"" + module + "/internal/job\"\n)\n\nvar _ = os.Args\nvar _ x.Spec\n",
		"a/a_test.go":              "package a\n\nimport \"net\"\n",
		"a/a_windows.go":           "package a\n\nimport \"os\"\nimport \"" + module + "\"\n",
		"a/tagged.go":              "//go:build soak\n\npackage a\n\nimport \"os/exec\"\n",
		"a/testdata/src/broken.go": "package\n",
		"a/_old/broken.go":         "package\n",
		"a/.hidden/broken.go":      "package\n",
		"a/other/go.mod":           "module other\n",
		"a/other/broken.go":        "package\n",
		"a/only/b_test.go":         "package only\n",
		"clock/clock.go":           "package clock\n\nimport t \"time\"\n\nvar now = t.Now\n\nfunc f(d t.Duration) { t.Sleep(d); _ = t.Unix(0, 0) }\n",
		"clock/dot.go":             "package clock\n\nimport . \"time\"\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{
		{path: "a", ours: []string{".", "internal/job"}, outside: []string{"os", "os/exec"}},
		{path: "a/only"},
		{path: "clock", outside: []string{"time"}, clocks: []string{"clock.go:5: time.Now", "clock.go:7: time.Sleep", "dot.go:3: import . \"time\""}},
	}
	same := func(a, b pkg) bool {
		return a.path == b.path && slices.Equal(a.ours, b.ours) && slices.Equal(a.outside, b.outside) && slices.Equal(a.clocks, b.clocks)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	if err := os.WriteFile(filepath.Join(dir, "clock/broken.go"), []byte("package\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readTree(dir); err == nil || !strings.Contains(err.Error(), "clock: broken.go:1") {
		t.Errorf("a file that does not parse: got error %v, want one that names clock and broken.go:1", err)
	}
}
