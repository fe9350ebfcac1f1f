package testimage

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"
)

var small = Image{
	Files:  map[string][]byte{"/opt/app/run": []byte("#!/bin/sh\n")},
	Links:  map[string]string{"/bin/run": "/opt/app/run"},
	Config: v1.Config{Entrypoint: []string{"/bin/run"}, User: "4711", WorkingDir: "/opt/app"},
	Arch:   "arm64",
}

// TestForms reads an image in each of its forms.
func TestForms(t *testing.T) {
	for form, dir := range map[string]string{
		"layout":  small.Layout(t),
		"OCI":     unpacked(t, small.OCI(t, "image.tar")),
		"OCI.gz":  unpacked(t, small.OCI(t, "image.tar.gz")),
		"OCI.zst": unpacked(t, small.OCI(t, "image.tar.zst")),
	} {
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		manifest, err := index.IndexManifest()
		if err != nil || len(manifest.Manifests) != 1 {
			t.Fatalf("%s: %v, %v", form, manifest, err)
		}
		image, err := index.Image(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		check(t, form, image)
	}
	for _, file := range []string{"image.tar", "image.tar.gz", "image.tar.zst"} {
		path := small.Archive(t, file)
		image, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(plain(t, path)), nil }, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		check(t, file, image)
	}
}

func check(t *testing.T, form string, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatalf("%s: %v", form, err)
	}
	if c := config.Config; config.Architecture != "arm64" || config.OS != "linux" || c.User != "4711" || c.WorkingDir != "/opt/app" || !slices.Equal(c.Entrypoint, []string{"/bin/run"}) {
		t.Errorf("%s: the configuration is %+v", form, config)
	}
	files := mutate.Extract(image)
	defer files.Close()
	var got []string
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		got = append(got, filepath.Clean("/"+header.Name)+" "+fs.FileMode(header.Mode).String()+" "+header.Linkname)
	}
	slices.Sort(got)
	want := []string{"/bin -rwxr-xr-x ", "/bin/run -rwxrwxrwx /opt/app/run", "/etc -rwxr-xr-x ", "/opt/app -rwxr-xr-x ", "/opt/app/run -rwxr-xr-x ", "/tmp -" + fs.FileMode(0o1777).String()[1:] + " "}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the files are %q, want %q", form, got, want)
	}
}

// plain opens a file and decompresses it if necessary.
func plain(t *testing.T, path string) io.Reader {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	switch filepath.Ext(path) {
	case ".gz":
		r, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		return r
	case ".zst":
		r, err := zstd.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	return file
}

// unpacked returns a directory with the files of an OCI archive.
func unpacked(t *testing.T, path string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	each(t, plain(t, path), func(name string, content io.Reader) {
		if strings.HasSuffix(name, "/") {
			return // a directory
		}
		data, err := io.ReadAll(content)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return dir
}
