package testimage

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gangrun/gangrun/internal/noskip"
)

// stub is a debootstrap that makes a system with one file.
const stub = `#!/bin/sh
echo run >>"$STUB/runs"
[ ! -e "$STUB/fail" ] || { echo E: no such mirror; exit 1; }
mkdir -p "$4/usr/bin" "$4/usr/lib/python3/dist-packages/tests" "$4/tmp" "$4/proc"
echo "$5" >"$4/usr/bin/mirror"
touch "$4/tmp/left"
`

// stubs puts programs that replace debootstrap and apt-get into PATH.
func stubs(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "only root can make an image")
	}
	dir = t.TempDir()
	for name, text := range map[string]string{"debootstrap": stub, "apt-get": "#!/bin/sh\necho http://mirror.test/debian/\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("STUB", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// TestDebianIsMadeOnce asks for the image in several goroutines, after an earlier build was killed.
func TestDebianIsMadeOnce(t *testing.T) {
	dir, cache := stubs(t), t.TempDir()
	images := filepath.Join(cache, "gangrun", "images")
	if err := os.MkdirAll(filepath.Join(images, "build.killed", "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 4)
	var group sync.WaitGroup
	for i := range paths {
		group.Go(func() { paths[i] = debian(t, cache) })
	}
	group.Wait()
	for _, path := range paths {
		if path != paths[0] || filepath.Dir(path) != images {
			t.Errorf("the images are at %q, want one path below %s", paths, images)
		}
	}
	if runs, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(runs) != "run\n" {
		t.Errorf("debootstrap ran %q, want once; %v", runs, err)
	}
	if left, err := os.ReadDir(images); err != nil || len(left) != 2 {
		t.Errorf("%s has %v, %v, want the image and the lock", images, left, err)
	}
	_, files := open(t, paths[0])
	if got := files["./usr/bin/mirror"]; got != "http://mirror.test/debian/\n" {
		t.Errorf("debootstrap took the mirror %q", got)
	}
	for _, name := range []string{"./tmp/left", "./usr/lib/python3/dist-packages/tests/"} {
		if _, there := files[name]; there {
			t.Errorf("the image has %s", name)
		}
	}
}

// fatal is a test that only records its failure.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestDebianCannotBeMade(t *testing.T) {
	dir, cache := stubs(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fatal{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		debian(f, cache)
	}()
	<-done
	if !strings.Contains(f.text, "E: no such mirror") || !strings.Contains(f.text, "gangrun: error: debootstrap failed") {
		t.Errorf("the test ends with %q", f.text)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "gangrun", "images", "b*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestDebian builds the real image.
func TestDebian(t *testing.T) {
	path := Debian(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	config, files := open(t, path)
	t.Logf("%s: %d MB, %d files", path, info.Size()/1e6, len(files))
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	}
	for _, name := range []string{"usr/bin/python3", "usr/bin/mpirun.openmpi", "usr/bin/orted", "usr/bin/mpiexec.hydra", "usr/lib/python3/dist-packages/mpi4py/__init__.py", "usr/lib/python3/dist-packages/numpy/__init__.py"} {
		if _, there := files["./"+name]; !there {
			t.Errorf("the image lacks %s", name)
		}
	}
}

// imageConfig has the parts of an image's configuration that the tests read.
type imageConfig struct {
	Architecture, OS string
	RootFS           struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

type descriptor struct {
	Digest string
	Size   int
}

// open checks the digests of an OCI archive with one layer. It returns the configuration and the files of the layer.
// Only small files have their content.
func open(t *testing.T, path string) (config imageConfig, files map[string]string) {
	t.Helper()
	archive, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	blobs := map[string][]byte{}
	each(t, archive, func(name string, content io.Reader) {
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		blobs[name] = data
	})
	blob := func(d descriptor) []byte {
		hex := strings.TrimPrefix(d.Digest, "sha256:")
		data := blobs["blobs/sha256/"+hex]
		if sum(data) != hex || len(data) != d.Size {
			t.Fatalf("blob %v has %d bytes and the digest %s", d, len(data), sum(data))
		}
		return data
	}
	var index struct{ Manifests []descriptor }
	read(t, blobs["index.json"], &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read(t, blob(index.Manifests[0]), &manifest)
	read(t, blob(manifest.Config), &config)
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	layer, err := decoder.DecodeAll(blob(manifest.Layers[0]), nil)
	if err != nil || "sha256:"+sum(layer) != config.RootFS.DiffIDs[0] {
		t.Fatalf("the layer has the digest %s, want %q; %v", sum(layer), config.RootFS.DiffIDs, err)
	}
	files = map[string]string{}
	each(t, strings.NewReader(string(layer)), func(name string, content io.Reader) {
		data, err := io.ReadAll(io.LimitReader(content, 1000))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	})
	return config, files
}

// each calls f for each entry of a tar file.
func each(t *testing.T, file io.Reader, f func(name string, content io.Reader)) {
	t.Helper()
	r := tar.NewReader(file)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(header.Name, r)
	}
}

func read(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
