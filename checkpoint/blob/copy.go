package blob

import "io"

const (
	chunk  = 512 << 10 // bytes of a read
	chunks = 3         // chunks in memory: one is read, one is written to w, and one waits
)

// CopyTo writes n bytes, from off on, to w. It reads ahead while w works. It returns io.ErrUnexpectedEOF if
// the file is too short.
func (f *File) CopyTo(w io.Writer, off, n int64) error {
	if off < 0 || n < 0 || off > f.Size-n {
		return io.ErrUnexpectedEOF
	}
	if n <= chunk {
		b, err := f.Bytes(off, n)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
	type part struct {
		b   []byte
		err error
	}
	free, full, stop := make(chan []byte, chunks), make(chan part, chunks), make(chan struct{})
	for range chunks {
		free <- make([]byte, chunk)
	}
	go func() {
		defer close(full)
		for end := off + n; off < end; {
			select {
			case <-stop:
				return
			case b := <-free:
				b = b[:min(chunk, end-off)]
				m, err := f.ReadAt(b, off)
				if m == len(b) {
					err = nil
				} else if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				full <- part{b, err}
				if off += int64(len(b)); err != nil {
					return
				}
			}
		}
	}()
	var failed error
	for p := range full {
		if failed == nil {
			if failed = p.err; failed == nil {
				_, failed = w.Write(p.b)
			}
			if failed != nil {
				close(stop)
			}
		}
		free <- p.b[:chunk]
	}
	return failed
}
