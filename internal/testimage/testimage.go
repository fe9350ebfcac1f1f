// Package testimage makes images for tests: small images from files in memory, and a large image of Debian. It
// needs no registry.
package testimage

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/gangrun/gangrun/internal/noskip"
)

// Image is an image of one layer.
type Image struct {
	// Files are the programs and other files, by their absolute paths.
	Files map[string][]byte
	// Links are symbolic links, by their absolute paths.
	Links  map[string]string
	Config v1.Config
	Arch   string // the architecture, as GOARCH names it; empty means amd64
	Name   string // the image's name in the file that the method Archive writes; empty means example.test/image:1
}

// busybox is the package busybox-static's program.
const busybox = "/bin/busybox"

// Busybox returns an image with a shell and the usual small programs.
func Busybox(t testing.TB) Image {
	t.Helper()
	program, err := os.ReadFile(busybox)
	if err != nil {
		noskip.Skip(t, "no busybox-static: %v", err)
	}
	links := map[string]string{}
	for _, applet := range strings.Fields("sh ls cat sleep id env echo touch mkdir mv rm grep kill true false head dd mount df stat") {
		links["/bin/"+applet] = busybox
	}
	return Image{Files: map[string][]byte{busybox: program}, Links: links, Config: v1.Config{Env: []string{"PATH=/bin", "FROM_IMAGE=yes"}}}
}

// build returns the image.
func (i Image) build(t testing.TB) v1.Image {
	t.Helper()
	data := i.tar(t)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithCompressedCaching) // else it is compressed for each of its readers
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", i.Arch, i.Config
	if i.Arch == "" {
		file.Architecture = "amd64"
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

// tar returns the layer.
func (i Image) tar(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dirs := map[string]bool{"/tmp": true, "/etc": true}
	for file := range i.Files {
		dirs[path.Dir(file)] = true
	}
	for link := range i.Links {
		dirs[path.Dir(link)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		mode := int64(0o755)
		if dir == "/tmp" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Name: "." + dir + "/", Typeflag: tar.TypeDir, Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(i.Files)) {
		data := i.Files[file]
		if err := w.WriteHeader(&tar.Header{Name: "." + file, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range slices.Sorted(maps.Keys(i.Links)) {
		if err := w.WriteHeader(&tar.Header{Name: "." + link, Typeflag: tar.TypeSymlink, Linkname: i.Links[link], Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Archive writes the image as "docker save" does, and returns the path of the file. file is its
// name. The name must end in .tar, .tar.gz or .tar.zst.
func (i Image) Archive(t testing.TB, file string) string {
	t.Helper()
	tag, err := name.NewTag(cmp.Or(i.Name, "example.test/image:1"))
	if err != nil {
		t.Fatal(err)
	}
	return create(t, file, func(w io.Writer) error { return tarball.Write(tag, i.build(t), w) })
}

// OCI writes the image as an OCI archive, the tar file of an OCI layout, and returns the path of
// the file. The name, file, must have one of the endings that Archive accepts.
func (i Image) OCI(t testing.TB, file string) string {
	t.Helper()
	dir := i.Layout(t)
	return create(t, file, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		return errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close())
	})
}

// create makes a file of a test, which is compressed as the end of its name says, and returns the path.
func create(t testing.TB, file string, write func(io.Writer) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var w io.WriteCloser = out
	switch filepath.Ext(file) {
	case ".gz":
		w = gzip.NewWriter(out)
	case ".zst":
		if w, err = zstd.NewWriter(out); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// Layout writes the image as an OCI layout and returns the directory.
func (i Image) Layout(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendImage(i.build(t)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Push puts the image into a registry and returns its full name.
func (i Image) Push(t testing.TB, host, ref, user, secret string) string {
	t.Helper()
	full := host + "/" + ref
	tag, err := name.NewTag(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, i.build(t), remote.WithAuth(&authn.Basic{Username: user, Password: secret}), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	return full
}
