package checkpoint

import (
	"bufio"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/pyliteral"
)

const npyMagic = "\x93NUMPY"

// maxHeader bounds an array's header, in bytes: the dtype of a structure with
// a million fields has less.
const maxHeader = 64 << 20

// checkArray checks that r, which has size bytes, holds one array as numpy.save
// writes it: a header, and as many bytes as the header says, or a pickle for
// an array of objects. It need not read them all.
func checkArray(r *bufio.Reader, size int64) error {
	n, err := arrayLen(r)
	if err != nil {
		return err
	}
	if n < 0 {
		return pickle.Scan(r, nil)
	}
	if n != size {
		return flaw.New("truncated: it has %d bytes, but its header says %d", size, n)
	}
	return nil
}

// checkNPY checks a file of arrays, one after another: numpy.save to one
// handle several times makes more than one.
func checkNPY(f *file) error {
	for off := int64(0); off < f.size; {
		s := f.from(off)
		n, err := arrayLen(s)
		switch {
		case err != nil:
			return err
		case n < 0:
			if err := pickle.Scan(s.Reader, nil); err != nil {
				return err
			}
			off = s.pos()
		case n > f.size-off:
			return flaw.New("truncated: it has %d bytes, but its header says %d", f.size, off+n)
		default:
			off += n
		}
	}
	return nil
}

// arrayLen reads an array's header and returns the length of header and array
// in bytes, -1 for an array of objects.
func arrayLen(r io.Reader) (int64, error) {
	var h [8]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, flaw.Truncated("its header", err)
	}
	if string(h[:6]) != npyMagic {
		return 0, flaw.New("it does not begin like an array of numpy's")
	}
	width := 2
	if h[6] > 1 {
		width = 4
	}
	var l [4]byte
	if _, err := io.ReadFull(r, l[:width]); err != nil {
		return 0, flaw.Truncated("its header", err)
	}
	headerLen := int64(le.Uint32(l[:]))
	if headerLen > maxHeader {
		return 0, flaw.New("its header claims to have %d bytes", headerLen)
	}
	header, err := io.ReadAll(io.LimitReader(r, headerLen))
	if err == nil && int64(len(header)) < headerLen {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, flaw.Truncated("its header", err)
	}
	fields, err := pyliteral.Parse(string(header))
	if err != nil {
		return 0, flaw.New("its header cannot be read: %v", err)
	}
	dict, _ := fields.(map[string]any)
	item, err := itemSize(dict["descr"])
	if err != nil {
		return 0, flaw.New("its header cannot be read: %v", err)
	}
	total, err := product(item, dict["shape"])
	if err != nil {
		return 0, flaw.New("its header cannot be read: %v", err)
	}
	if item < 0 {
		return -1, nil
	}
	return 8 + int64(width) + headerLen + total, nil
}

// itemSize returns the bytes of one item of a dtype as numpy describes it in a
// header, -1 for objects: "<f4", or a list of fields (name, dtype[, shape]).
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

// typeSize returns the bytes of a simple dtype: a byte order, a letter and a
// number, and a unit for dates.
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
		n *= 4 // UCS4
	}
	return n, nil
}

// product returns size times every number of shape, a number or a tuple of
// them; of objects it stays -1.
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
