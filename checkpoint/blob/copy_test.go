package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limited is a writer that fails after some bytes.
type limited struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("full")

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errFull
	}
	return l.Buffer.Write(p)
}

// failing is a reader that fails after an offset.
type failing struct {
	r    io.ReaderAt
	from int64
}

var errRead = errors.New("I/O error")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errRead
	}
	return f.r.ReadAt(p, off)
}

func TestCopyTo(t *testing.T) {
	content := make([]byte, 5*chunk+77)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	whole := &File{Ctx: t.Context(), R: bytes.NewReader(content), Size: int64(len(content))}
	for _, c := range []struct{ off, n int }{{0, len(content)}, {3, chunk}, {5, chunk + 1}, {9, 0}, {1, 4*chunk + 5}} {
		var out bytes.Buffer
		if err := whole.CopyTo(&out, int64(c.off), int64(c.n)); err != nil || !bytes.Equal(out.Bytes(), content[c.off:c.off+c.n]) {
			t.Errorf("%+v: %d bytes (%v)", c, out.Len(), err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		f    *File
		left int
		want error
	}{
		"writer":  {whole, 2 * chunk, errFull},
		"reader":  {&File{Ctx: t.Context(), R: failing{bytes.NewReader(content), 3 * chunk}, Size: whole.Size}, len(content), errRead},
		"shrunk":  {&File{Ctx: t.Context(), R: bytes.NewReader(content[:3*chunk+1]), Size: whole.Size}, len(content), io.ErrUnexpectedEOF},
		"ended":   {&File{Ctx: ended, R: whole.R, Size: whole.Size}, len(content), context.Canceled},
		"too far": {&File{Ctx: t.Context(), R: whole.R, Size: 2 * chunk}, len(content), io.ErrUnexpectedEOF},
	} {
		if err := c.f.CopyTo(&limited{left: c.left}, 0, whole.Size); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
