package container

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is an image in the store of this host.
type Image struct {
	Name      string
	Namespace string        // the namespace of containerd that has it
	Digest    digest.Digest // the digest of the manifest for this platform
	Platform  string        // as in "linux/amd64"
	Bytes     int64         // the size of its blobs
	Config    ocispec.ImageConfig
	image     client.Image
}

// MissingError reports that no namespace of containerd has an image.
type MissingError struct{ Name string }

// Error names the image and the namespaces.
func (e *MissingError) Error() string {
	return fmt.Sprintf("containerd has no image %s in its namespaces gangrun, default, k8s.io and moby", e.Name)
}

// PlatformError reports that an image is for other platforms than that of this machine.
type PlatformError struct {
	Name string
	Has  []string // the platforms of the image, as in "linux/arm64"
	Want string
}

// Error lists the platforms of the image.
func (e *PlatformError) Error() string {
	return fmt.Sprintf("image %s is for %v, and this host is %s", e.Name, e.Has, e.Want)
}

// BrokenError reports that an archive does not have a complete image.
type BrokenError struct{ Err error }

// Error returns what is wrong with the archive.
func (e *BrokenError) Error() string { return "the archive is not a complete image: " + e.Err.Error() }

// Unwrap returns the error that occurred when the archive was read.
func (e *BrokenError) Unwrap() error { return e.Err }

// FullName returns the full form of a reference, as in "docker.io/library/ubuntu:24.04" for
// "ubuntu:24.04".
func FullName(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("%q is not a reference to an image: %w", ref, err)
	}
	return named.String(), nil
}

// Find returns the image called name from the store of this host. The error is a *MissingError if the store
// does not have the image, and a *PlatformError if the image is for other platforms.
func (r *Runtime) Find(ctx context.Context, name string) (*Image, error) {
	for _, namespace := range searched {
		within := in(ctx, namespace)
		image, err := r.client.GetImage(within, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if namespace == Namespace {
			r.markUsed(within, image.Metadata())
		}
		return r.look(within, namespace, image)
	}
	return nil, &MissingError{Name: name}
}

// look returns what there is to know about an image.
func (r *Runtime) look(ctx context.Context, namespace string, image client.Image) (*Image, error) {
	i := &Image{Name: image.Name(), Namespace: namespace, Platform: platforms.DefaultString(), image: image}
	manifest, err := images.Manifest(ctx, r.client.ContentStore(), image.Target(), platforms.Default())
	if errdefs.IsNotFound(err) {
		has, listErr := images.Platforms(ctx, r.client.ContentStore(), image.Target())
		if listErr != nil || len(has) == 0 {
			return nil, &BrokenError{err}
		}
		wrong := &PlatformError{Name: i.Name, Want: i.Platform}
		for _, p := range has {
			wrong.Has = append(wrong.Has, platforms.Format(p))
		}
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	spec, err := image.Spec(ctx)
	if err != nil {
		return nil, err
	}
	i.Config = spec.Config
	if i.Digest, err = manifestDigest(ctx, r.client, image); err != nil {
		return nil, err
	}
	for _, layer := range append(manifest.Layers, manifest.Config) {
		i.Bytes += layer.Size
	}
	return i, nil
}

// manifestDigest returns the digest of the manifest for this platform.
func manifestDigest(ctx context.Context, c *client.Client, image client.Image) (found digest.Digest, err error) {
	target := image.Target()
	if images.IsManifestType(target.MediaType) {
		return target.Digest, nil
	}
	matcher := platforms.Default()
	children, err := images.Children(ctx, c.ContentStore(), target)
	if err != nil {
		return "", err
	}
	for _, child := range children {
		if !images.IsManifestType(child.MediaType) || child.Platform != nil && !matcher.Match(*child.Platform) {
			continue
		}
		if child.Platform != nil {
			return child.Digest, nil
		}
		if found == "" {
			found = child.Digest
		}
	}
	return found, nil
}

// Import reads an archive into the store of this host, in Namespace, under the given name. The archive is a tar
// file of an OCI layout, or a tar file that "docker save" has written. It may be compressed with gzip or zstd.
// The error is a *BrokenError if the archive is not complete.
func (r *Runtime) Import(ctx context.Context, name string, from io.Reader) (*Image, error) {
	ctx = in(ctx, Namespace)
	reader := &counted{from: from}
	plain, err := compression.DecompressStream(reader)
	if err != nil {
		return nil, reader.blame(err)
	}
	defer plain.Close()
	ctx, done, err := r.lease(ctx) // until the image has its name, containerd may remove its blobs
	if err != nil {
		return nil, err
	}
	defer done()
	imported, err := r.client.Import(ctx, plain, client.WithAllPlatforms(true), client.WithIndexName(name), client.WithImageLabels(map[string]string{usedLabel: nowUsed()}))
	if err != nil && !errdefs.IsAlreadyExists(err) { // another process may import it at the same time
		return nil, reader.blame(err)
	}
	for _, other := range imported { // the names in the archive
		if other.Name != name {
			if err := r.client.ImageService().Delete(ctx, other.Name); err != nil && !errdefs.IsNotFound(err) {
				return nil, err
			}
		}
	}
	if _, err := io.Copy(io.Discard, reader); err != nil { // what follows the end of the tar file
		return nil, err
	}
	image, err := r.client.GetImage(ctx, name)
	if err != nil {
		return nil, err
	}
	found, err := r.look(ctx, Namespace, image)
	if err != nil {
		return nil, errors.Join(err, r.Remove(ctx, name))
	}
	return found, nil
}

// counted distinguishes errors of a reader from those of what was read.
type counted struct {
	from io.Reader
	err  error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// blame returns the error of the reader if it had one. Otherwise the archive is broken, unless
// containerd could not store it.
func (c *counted) blame(err error) error {
	switch {
	case c.err != nil:
		return c.err
	case Full(err), errdefs.IsUnavailable(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &BrokenError{err}
}

// Unpack makes the image's files ready for containers. It does nothing if they are ready already.
func (r *Runtime) Unpack(ctx context.Context, i *Image) error {
	ctx = in(ctx, i.Namespace)
	ready, err := i.image.IsUnpacked(ctx, snapshotter)
	if err != nil || ready {
		return err
	}
	ctx, done, err := r.lease(ctx)
	if err != nil {
		return err
	}
	defer done()
	return i.image.Unpack(ctx, snapshotter)
}

// Remove removes an image that Import has made, with its files.
func (r *Runtime) Remove(ctx context.Context, name string) error {
	err := r.client.ImageService().Delete(in(ctx, Namespace), name, images.SynchronousDelete())
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
