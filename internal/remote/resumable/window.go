package resumable

// window holds the bytes of a stream from offset start to offset end, in a ring that grows as
// needed up to limit bytes.
type window struct {
	start, end uint64 // offsets in the stream
	limit      int
	ring       []byte
}

// ringBytes is the first size of a ring.
const ringBytes = 4 << 10

func (w *window) len() int  { return int(w.end - w.start) }
func (w *window) room() int { return w.limit - w.len() }

// append adds as many bytes of p as there is room for, and returns their number.
func (w *window) append(p []byte) int {
	p = p[:min(len(p), w.room())]
	if len(p) == 0 {
		return 0
	}
	if need := w.len() + len(p); need > len(w.ring) {
		w.grow(need)
	}
	at := int(w.end % uint64(len(w.ring)))
	n := copy(w.ring[at:], p)
	copy(w.ring, p[n:])
	w.end += uint64(len(p))
	return len(p)
}

func (w *window) grow(need int) {
	ring := make([]byte, min(w.limit, max(need, 2*len(w.ring), ringBytes)))
	old := *w
	w.ring, w.end = ring, w.start
	for w.end < old.end {
		w.append(old.piece(w.end, old.len()))
	}
}

// piece returns the bytes from offset from on. It returns at most n bytes, and stops at the end of the ring.
func (w *window) piece(from uint64, n int) []byte {
	n = min(n, int(w.end-from))
	if n <= 0 {
		return nil
	}
	at := int(from % uint64(len(w.ring)))
	return w.ring[at:min(at+n, len(w.ring))]
}

// read copies bytes from offset from on into p, and returns their number.
func (w *window) read(p []byte, from uint64) int {
	n := copy(p, w.piece(from, len(p)))
	return n + copy(p[n:], w.piece(from+uint64(n), len(p)-n))
}

// drop removes the bytes before offset to. to may be beyond the end.
func (w *window) drop(to uint64) { w.start = max(w.start, min(to, w.end)) }

// free removes all bytes and frees the ring.
func (w *window) free() { w.start, w.ring = w.end, nil }
