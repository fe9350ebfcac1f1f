package checkpoint

import "encoding/binary"

// unsnap unpacks one block of Snappy ("Snappy compressed format description"):
// its length, then literals and copies of what is already there.
func unsnap(b []byte) ([]byte, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > 32*uint64(len(b)) { // 64 bytes of 3 are the most
		return nil, errTable
	}
	b = b[n:]
	out := make([]byte, 0, size)
	for len(b) > 0 {
		tag := int(b[0])
		length, offset, used := 0, 0, 0
		switch tag & 3 {
		case 0: // a literal; over 60 its length is in the next bytes
			length, used = tag>>2+1, 1
			if extra := length - 60; extra > 0 {
				if used += extra; len(b) < used {
					return nil, errTable
				}
				length = int(number(opBinInt2, b[1:used])) + 1
			}
			if length < 1 || length > len(b)-used {
				return nil, errTable
			}
			out = append(out, b[used:used+length]...)
			b = b[used+length:]
			if uint64(len(out)) > size {
				return nil, errTable
			}
			continue
		case 1:
			if used = 2; len(b) >= used {
				length, offset = tag>>2&7+4, tag>>5<<8|int(b[1])
			}
		case 2:
			if used = 3; len(b) >= used {
				length, offset = tag>>2+1, int(le.Uint16(b[1:]))
			}
		case 3:
			if used = 5; len(b) >= used {
				length, offset = tag>>2+1, int(le.Uint32(b[1:]))
			}
		}
		if offset < 1 || offset > len(out) || uint64(len(out)+length) > size {
			return nil, errTable
		}
		for range length { // the copy may overlap its source
			out = append(out, out[len(out)-offset])
		}
		b = b[used:]
	}
	if uint64(len(out)) != size {
		return nil, errTable
	}
	return out, nil
}
