// Package numpy checks arrays that numpy.save has written.
package numpy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/pyliteral"
)

// Magic is the beginning of an array.
const Magic = "\x93NUMPY"

// maxHeader bounds the header of an array, in bytes. The dtype of a structure with a million fields is
// shorter.
const maxHeader = 64 << 20

// CheckArray checks that r is one array, size bytes long: a header, and then as many bytes as the header says. After
// the header of an array of objects, CheckArray expects a pickle instead, and does not check the size. CheckArray
// returns the kind and the byte order of the array's numbers, and leaves r at the first number. For an array of
// objects, the kind is finite.None, and r is left after the pickle.
func CheckArray(r *bufio.Reader, size int64) (k finite.Kind, bigEndian bool, err error) {
	h, err := readHeader(r)
	switch {
	case err != nil:
		return finite.None, false, err
	case h.total < 0:
		return finite.None, false, pickle.Scan(r, nil)
	case h.total != size:
		return finite.None, false, flaw.New("truncated: it has %d bytes, but its header says %d", size, h.total)
	}
	return h.kind, h.big, nil
}

// Scan reads numbers of kind k from r, and counts in seen those that are not finite. name is the name of the
// array.
func Scan(r io.Reader, k finite.Kind, bigEndian bool, name string, seen *blob.Seen) error {
	scanner := finite.NewScanner(k, bigEndian)
	switch {
	case k == finite.Unknown:
		seen.NoteNumbers("", blob.Numbers{Skipped: 1})
		return nil
	case scanner == nil:
		return nil
	}
	if _, err := io.Copy(struct{ io.Writer }{scanner}, r); err != nil {
		return err
	}
	seen.NoteNumbers(name, scanner.Found())
	return nil
}

// Check checks a file with one or several arrays. A file has several arrays if a program has called numpy.save
// several times for the same open file.
func Check(f *blob.File) error {
	for off, i := int64(0), 0; off < f.Size; i++ {
		s := f.From(off)
		h, err := readHeader(s)
		switch {
		case err != nil:
			return err
		case h.total < 0:
			if err := pickle.Scan(s.Reader, nil); err != nil {
				return err
			}
			off = s.Pos()
			continue
		case h.total > f.Size-off:
			return flaw.New("truncated: it has %d bytes, but its header says %d", f.Size, off+h.total)
		}
		if f.Seen.IsDeep() {
			at := s.Pos()
			if err := Scan(f.Piece(at, off+h.total-at).From(0), h.kind, h.big, "array "+strconv.Itoa(i), f.Seen); err != nil {
				return err
			}
		}
		off += h.total
	}
	return nil
}

// header is the header of an array.
type header struct {
	total int64 // bytes of the header and the array; -1 for an array of objects
	kind  finite.Kind
	big   bool
}

// readHeader reads the header of an array.
func readHeader(r io.Reader) (header, error) {
	var h [8]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return header{}, flaw.Truncated("its header", err)
	}
	if string(h[:6]) != Magic {
		return header{}, flaw.New("it does not begin like an array of numpy's")
	}
	width := 2
	if h[6] > 1 {
		width = 4
	}
	var l [4]byte
	if _, err := io.ReadFull(r, l[:width]); err != nil {
		return header{}, flaw.Truncated("its header", err)
	}
	headerLen := int64(binary.LittleEndian.Uint32(l[:]))
	if headerLen > maxHeader {
		return header{}, flaw.New("its header claims to have %d bytes", headerLen)
	}
	text, err := io.ReadAll(io.LimitReader(r, headerLen))
	if err == nil && int64(len(text)) < headerLen {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return header{}, flaw.Truncated("its header", err)
	}
	fields, err := pyliteral.Parse(string(text))
	if err != nil {
		return header{}, flaw.New("its header cannot be read: %v", err)
	}
	dict, _ := fields.(map[string]any)
	item, err := itemSize(dict["descr"])
	if err != nil {
		return header{}, flaw.New("its header cannot be read: %v", err)
	}
	total, err := product(item, dict["shape"])
	if err != nil {
		return header{}, flaw.New("its header cannot be read: %v", err)
	}
	if item < 0 {
		return header{total: -1}, nil
	}
	out := header{total: 8 + int64(width) + headerLen + total}
	if simple, ok := dict["descr"].(string); ok {
		out.kind, out.big = finite.KindOf(simple)
	} else {
		out.kind = finite.Unknown // the dtype is a structure
	}
	return out, nil
}

// itemSize returns the size in bytes of an item with a dtype, as the header has it: "<f4", or a list of
// fields (name, dtype[, shape]). It returns -1 for objects.
func itemSize(descr any) (int64, error) {
	switch d := descr.(type) {
	case string:
		return typeSize(d)
	case []any:
		var sum int64
		for _, field := range d {
			parts, ok := field.([]any)
			if !ok || len(parts) < 2 || len(parts) > 3 {
				return 0, fmt.Errorf("a field of its dtype is %v", field)
			}
			n, err := itemSize(parts[1])
			if err == nil && len(parts) == 3 {
				n, err = product(n, parts[2])
			}
			if n < 0 || err != nil {
				return n, err
			}
			if sum += n; sum < 0 {
				return 0, fmt.Errorf("its dtype is too big")
			}
		}
		return sum, nil
	default:
		return 0, fmt.Errorf("its dtype is %v", descr)
	}
}

// typeSize returns the size in bytes of a simple dtype. That is a byte order, a letter, a number, and for
// dates a unit.
func typeSize(text string) (int64, error) {
	t := strings.TrimLeft(text, "<>|=")
	if t == "" {
		return 0, fmt.Errorf("its dtype is %q", text)
	}
	if t[0] == 'O' {
		return -1, nil
	}
	digits, _, _ := strings.Cut(t[1:], "[")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || !strings.ContainsRune("biufcmMSUVat", rune(t[0])) {
		return 0, fmt.Errorf("its dtype is %q", text)
	}
	if t[0] == 'U' {
		n *= 4 // a character has four bytes
	}
	return n, nil
}

// product multiplies size by all numbers of shape, which is a number or a tuple. It returns -1 if size is -1.
func product(size int64, shape any) (int64, error) {
	dims, ok := shape.([]any)
	if !ok {
		dims = []any{shape}
	}
	total := uint64(max(size, 0))
	for _, d := range dims {
		n, ok := d.(int64)
		if !ok || n < 0 {
			return 0, fmt.Errorf("its shape is %v", shape)
		}
		hi, lo := bits.Mul64(total, uint64(n))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("its shape is %v, which is too big", shape)
		}
		total = lo
	}
	if size < 0 {
		return -1, nil
	}
	return int64(total), nil
}
