package ssh

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// form is the form in which a program is sent to a host. The host asks for the first of zstd, gzip and plain that it
// can unpack.
type form string

const (
	formZstd  form = "zstd"
	formGzip  form = "gzip"
	formPlain form = "plain"
)

// packer returns a writer that compresses into to.
func (f form) packer(to io.Writer) (io.WriteCloser, error) {
	if f == formZstd {
		return zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest)) // the host also unpacks it faster
	}
	return gzip.NewWriterLevel(to, gzip.BestSpeed)
}

// pack returns the compressed program.
func (p Program) pack(f form) ([]byte, error) {
	from, err := p.Open()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	var packed bytes.Buffer
	to, err := f.packer(&packed)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(to, from); err == nil {
		err = to.Close()
	}
	return packed.Bytes(), err
}

// packings has the compressed forms of a program. Each form is made once for all hosts.
type packings struct{ zstd, gzip func() ([]byte, error) }

// packings returns the compressed forms. Each of them is made at the first call of its function.
func (p Program) packings() *packings {
	once := func(f form) func() ([]byte, error) {
		return sync.OnceValues(func() ([]byte, error) { return p.pack(f) })
	}
	return &packings{zstd: once(formZstd), gzip: once(formGzip)}
}

// open returns the program in the form f, and its size in that form.
func (p Program) open(f form) (io.ReadCloser, int64, error) {
	packed := p.packed
	if packed == nil {
		packed = p.packings()
	}
	var data []byte
	var err error
	switch f {
	case formZstd:
		data, err = packed.zstd()
	case formGzip:
		data, err = packed.gzip()
	case formPlain:
		from, err := p.Open()
		return from, p.Size, err
	default:
		return nil, 0, fmt.Errorf("the host asks for the unknown form %q", f)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), err
}
