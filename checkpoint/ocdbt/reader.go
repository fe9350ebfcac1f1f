package ocdbt

import (
	"encoding/binary"
	"strconv"
)

// reader reads the columns of a node. If bad is set, its results are not valid.
type reader struct {
	b   []byte
	bad bool
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }

func (r *reader) byte() byte { return r.bytes(1)[0] }

// bytes returns the next n bytes. It returns zeros if there are fewer.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return make([]byte, min(max(n, 1), 16))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count returns the number of the following items. Each item has at least one byte.
func (r *reader) count() int {
	n := r.varint()
	if n > uint64(len(r.b)) {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return int(n)
}

// varints returns a column of n numbers.
func (r *reader) varints(n int) []uint64 {
	out := make([]uint64, n)
	for i := 0; i < n && !r.bad; i++ {
		out[i] = r.varint()
	}
	return out
}

// strings returns strings. common has the number of bytes that each has in common with the one before it.
func (r *reader) strings(common, lengths []uint64) []string {
	out := make([]string, len(lengths))
	total := 0
	for i, n := range lengths {
		if r.bad || n > uint64(len(r.b)) {
			r.bad = true
			return out
		}
		before := ""
		if i > 0 {
			if common[i-1] > uint64(len(out[i-1])) {
				r.bad = true
				return out
			}
			before = out[i-1][:common[i-1]]
		}
		out[i] = before + string(r.bytes(int(n)))
		if total += len(out[i]); total > 4*maxNode {
			r.bad = true
			return out
		}
	}
	return out
}

// files returns a table of data files. base is the part of the node's path that comes before the paths of the
// files.
func (r *reader) files(base string) []place {
	n := r.count()
	if r.bad || n == 0 {
		return nil
	}
	common, lengths, bases := r.varints(n-1), r.varints(n), r.varints(n)
	if r.bad {
		return nil
	}
	out := make([]place, n)
	for i, name := range r.strings(common, lengths) {
		if r.bad || bases[i] > uint64(len(name)) {
			r.bad = true
			return nil
		}
		out[i] = place{base: base + name[:bases[i]], path: base + name}
	}
	return out
}

// keys returns the keys of n entries. Keys of inner nodes have one more column.
func (r *reader) keys(n int, inner bool) []string {
	common, lengths := r.varints(n-1), r.varints(n)
	if inner {
		r.varints(n) // lengths of the common prefixes of all keys below
	}
	return r.strings(common, lengths)
}

// places returns the places of n nodes, and skips their statistics. Roots of versions also have a time.
func (r *reader) places(files []place, n int, roots bool) []place {
	ids, offsets, lengths := r.varints(n), r.varints(n), r.varints(n)
	for range 3 {
		r.varints(n)
	}
	if roots {
		r.bytes(8 * n)
	}
	out := make([]place, n)
	for i := range n {
		if r.bad {
			return out
		}
		if out[i].offset = offsets[i]; out[i].missing() {
			continue
		}
		if ids[i] >= uint64(len(files)) {
			r.bad = true
			return out
		}
		out[i] = files[ids[i]]
		out[i].offset, out[i].length = offsets[i], lengths[i]
	}
	return out
}
