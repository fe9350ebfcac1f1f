package survey

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

func TestVersions(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	needy := compiled(t, dir)
	// The name of the file says that the library has another version.
	if err := os.Rename(dir+"/lib/libgangruntest.so", dir+"/lib/libgangruntest.so.4.2.0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("libgangruntest.so.4.2.0", dir+"/lib/libgangruntest.so"); err != nil {
		t.Fatal(err)
	}
	agenttest.WriteFile(t, dir+"/site/gangruntest-1.2.3.dist-info/METADATA", "Metadata-Version: 2.1\nName: gangruntest\nVersion: 1.2.3\n", 0o644)
	agenttest.WriteFile(t, dir+"/site/torch-2.3.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0+cu121\n", 0o644)
	agenttest.WriteFile(t, dir+"/train.py", "def train():\n    from gangruntest.deep import x\n", 0o644)
	agenttest.WriteFile(t, dir+"/run.py", "#!"+python+"\nimport gangruntest\n", 0o755)
	env := environ.Overlay(os.Environ(), []string{"LD_LIBRARY_PATH=" + dir + "/lib", "PYTHONPATH=" + dir + "/site"})
	v := Surveyor{Host: "h1", Env: env, Children: processtest.New(t)}
	for _, c := range []struct {
		command string
		want    map[string]string // patterns by name; an empty pattern means that there must be no such version
	}{
		{needy, map[string]string{"libgangruntest.so": `^4\.2\.0( build [0-9a-f]{8})?$`, "libc.so.6": `^6( build [0-9a-f]{8})?$`, "Python": "", "torch": ""}},
		{python + " train.py", map[string]string{"Python": `^3\.`, "gangruntest": `^1\.2\.3$`, "torch": `^2\.3\.0\+cu121$`, "libc.so.6": "^6"}},
		{"./run.py", map[string]string{"Python": `^3\.`, "gangruntest": `^1\.2\.3$`}},
		{"/nosuch", map[string]string{"libc.so.6": "", "Python": ""}},
	} {
		ask := job.Survey{Command: strings.Fields(c.command), Workdir: dir, Versions: true}
		got := map[string]string{}
		for _, f := range v.Survey(t.Context(), ask).Versions {
			got[f.Name] = f.Version
		}
		for name, pattern := range c.want {
			if version, ok := got[name]; ok != (pattern != "") || !regexp.MustCompile(pattern).MatchString(version) {
				t.Errorf("%s: %s is of version %q, want %q", c.command, name, version, pattern)
			}
		}
		ask.Versions = false
		if all := v.Survey(t.Context(), ask).Versions; all != nil {
			t.Errorf("%s: versions that nobody asked for: %v", c.command, all)
		}
	}
}

// note returns an ELF note.
func note(kind uint32, name string, content []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(content)))
	out = binary.LittleEndian.AppendUint32(out, kind)
	return append(append(out, name...), content...)
}

func TestBuildID(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/a.c", "int a;\n", 0o644)
	agenttest.Compile(t, dir, "gcc", "-shared", "-Wl,--build-id=0x0123456789abcdef", "-o", "liba.so.1.2", "a.c")
	agenttest.Compile(t, dir, "gcc", "-shared", "-Wl,--build-id=none", "-o", "libb.so", "a.c")
	for name, want := range map[string]string{"liba.so.1.2": `^1\.2 build 01234567$`, "libb.so": `^[0-9]+ bytes$`, "absent.so": "^$"} {
		if got := buildOf(filepath.Join(dir, name)); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func FuzzNoteID(f *testing.F) {
	good := note(3, "GNU\x00", []byte{0xab, 0xcd})
	if got := noteID(good, binary.LittleEndian); got != "abcd" {
		f.Errorf("got %q", got)
	}
	for _, bad := range [][]byte{nil, good[:10], good[:17], note(1, "GNU\x00", []byte{1}), note(3, "GNU\x01", []byte{1}), note(3, "FreeBSD\x00", []byte{1})} {
		if got := noteID(bad, binary.LittleEndian); got != "" {
			f.Errorf("%x: got %q", bad, got)
		}
		f.Add(bad)
	}
	f.Add(good)
	f.Add(append([]byte("\x04\x00\x00\x00\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00"), 1, 2, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if id := noteID(data, binary.LittleEndian); 2*len(data) < len(id) {
			t.Errorf("an id of %d digits in %d bytes", len(id), len(data))
		}
	})
}
