package controller

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/container"
)

// imageFor returns the image of a job, as imageOf does. If the run is taken over, imageFor returns
// no error, because ranks may be running. The error is then reported when an attempt needs the
// image.
func imageFor(spec job.Spec, home string, taken bool) (*launcher.Image, error) {
	image, err := imageOf(spec, home)
	if err == nil || !taken {
		return image, err
	}
	return &launcher.Image{Name: archiveName("unknown"), Open: func() (io.ReadCloser, int64, error) { return nil, 0, err }}, nil
}

// imageOf returns the image of a job. It returns nil if the job has none. home is gangrun's home, which has the hashes
// of archives.
func imageOf(spec job.Spec, home string) (*launcher.Image, error) {
	if spec.Image == "" {
		return nil, nil
	}
	if !job.ImageFile(spec.Image) {
		full, err := container.FullName(spec.Image)
		if err != nil {
			return nil, failure.Usage("name an image as ubuntu:24.04, or an archive by its path, as ./train.tar", "%v", err)
		}
		user, secret, err := credentials(full)
		if err != nil {
			return nil, failure.Usage("log in to the registry again (docker login, podman login), or correct the file of the credentials", "%v", err)
		}
		return &launcher.Image{Name: full, User: user, Secret: secret}, nil
	}
	info, err := os.Stat(spec.Image)
	if err != nil {
		return nil, failure.Usage("name an archive that docker save, podman save or ctr image export has written, or an OCI layout", "cannot read the image: %v", err)
	}
	if info.IsDir() {
		return layoutImage(spec.Image)
	}
	if !info.Mode().IsRegular() {
		return nil, failure.Usage("name an archive, a directory with an OCI layout, or a reference", "the image %s is neither a file nor a directory", spec.Image)
	}
	sum, err := hashOf(spec.Image, info, filepath.Join(home, "images"))
	if err != nil {
		return nil, err
	}
	return &launcher.Image{Name: archiveName(sum), Open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(spec.Image)
		return f, info.Size(), err
	}}, nil
}

// credentials returns the user's credentials for the registry of an image. They come from the files and helpers of
// docker login and podman login. They are empty if there are none.
func credentials(image string) (user, secret string, err error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", "", err
	}
	auth, err := authn.DefaultKeychain.Resolve(ref.Context().Registry)
	if err != nil {
		return "", "", fmt.Errorf("cannot read the credentials for %s: %w", ref.Context().RegistryStr(), err)
	}
	found, err := auth.Authorization()
	if err != nil {
		return "", "", fmt.Errorf("cannot read the credentials for %s: %w", ref.Context().RegistryStr(), err)
	}
	if found.IdentityToken != "" { // containerd takes a token as a secret without a user
		return "", found.IdentityToken, nil
	}
	return found.Username, found.Password, nil
}

// archiveName is the name under which hosts keep the image of an archive.
func archiveName(sum string) string { return "gangrun.local/archive:sha256-" + sum }

// hashOf returns the SHA-256 of a file. It computes the hash again only if the file's inode, size or times have
// changed.
func hashOf(path string, info os.FileInfo, cache string) (string, error) {
	key := sha256.Sum256([]byte(identityOf(info)))
	known := filepath.Join(cache, hex.EncodeToString(key[:16]))
	if data, err := os.ReadFile(known); err == nil && len(data) == 2*sha256.Size {
		return string(data), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read the image: %w", err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if err := os.MkdirAll(cache, 0o700); err == nil {
		_ = atomicfile.WriteFile(known, []byte(sum), 0o600) // otherwise the hash is computed again
	}
	return sum, nil
}

// identityOf returns a text that changes if the file is written again.
func identityOf(info os.FileInfo) string {
	stat, _ := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(stat.Dev, stat.Ino, info.Size(), info.ModTime().UnixNano(), stat.Ctim)
}

// layoutImage returns the image in the directory of an OCI layout. The name of the image has a hash of the layout's
// index. The index names everything else by digests.
func layoutImage(dir string) (*launcher.Image, error) {
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, failure.Usage("name an archive, or the directory of an OCI layout", "the directory %s is not an OCI layout: %v", dir, err)
	}
	sum := sha256.Sum256(index)
	return &launcher.Image{Name: archiveName(hex.EncodeToString(sum[:])), Open: func() (io.ReadCloser, int64, error) {
		return openLayout(dir)
	}}, nil
}

// openLayout returns an OCI layout as a tar file. The tar file is made while it is read.
func openLayout(dir string) (io.ReadCloser, int64, error) {
	from, to := io.Pipe()
	l := &layout{PipeReader: from}
	l.writing.Go(func() {
		w := tar.NewWriter(to)
		err := w.AddFS(os.DirFS(dir))
		_ = to.CloseWithError(errors.Join(err, w.Close()))
	})
	return l, 0, nil
}

// layout is the reader of openLayout.
type layout struct {
	*io.PipeReader
	writing sync.WaitGroup
}

// Close also ends the goroutine that writes the archive, and waits for its end.
func (l *layout) Close() error {
	err := l.PipeReader.Close()
	l.writing.Wait()
	return err
}
