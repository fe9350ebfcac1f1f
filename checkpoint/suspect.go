package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/checkpoint/naming"
)

const (
	maxSiblings = 5    // number of earlier files with whose sizes a file's size is compared
	minSame     = 4096 // in bytes; smaller files are mostly texts, whose sizes differ a little
)

// isOpen reports whether a truncated file of a format can look complete. This is so if the format does not mark
// the end of a file, or does not record how many parts the file has.
func isOpen(format string) bool {
	switch format {
	case formatPlain, formatPickle, formatNPY, formatCompressed, formatRecords, formatONNX:
		return true
	}
	p := programOfFormat(format)
	return p != nil && p.open
}

// isShort reports whether a file of a size was probably truncated. earlier has the sizes of earlier files of
// its kind, the newest first. A raw dump has the same size every time: if there are two or more earlier files,
// all of the same size, every smaller file is short. Otherwise the sizes may differ for good reasons, and a
// file is short only if it has less than half of the median size.
func isShort(size int64, earlier []int64) bool {
	if len(earlier) == 0 {
		return false
	}
	sorted := slices.Sorted(slices.Values(earlier[:min(len(earlier), maxSiblings)]))
	smallest, median := sorted[0], sorted[(len(sorted)-1)/2]
	if len(sorted) > 1 && smallest == sorted[len(sorted)-1] && smallest >= minSame {
		return size < smallest
	}
	return 2*size < median
}

// suspicion returns why the candidate is suspect, or "". open has the candidate's files that may have been
// truncated. suspicion compares their sizes with the sizes of the same files in older candidates.
func (c candidate) suspicion(open tree, older []candidate) string {
	known := map[int]map[string]int64{} // by the index in older
	for _, m := range open {
		var sizes []int64
		kind := naming.Pattern(m.name)
		larger, largerThan := "", int64(0)
		for i, o := range older {
			if known[i] == nil {
				known[i] = c.siblings(o)
			}
			size, ok := known[i][kind]
			if !ok {
				continue
			}
			if sizes = append(sizes, size); larger == "" && size > m.size {
				larger, largerThan = filepath.Base(o.path), size
			}
			if len(sizes) == maxSiblings {
				break
			}
		}
		switch {
		case !isShort(m.size, sizes):
		case c.dir:
			return fmt.Sprintf("suspect: %s has %s, in %s it has %s", m.name, sizeBeside(m.size, largerThan), larger, sizeBeside(largerThan, m.size))
		default:
			return fmt.Sprintf("suspect: %s, %s has %s", sizeBeside(m.size, largerThan), larger, sizeBeside(largerThan, m.size))
		}
	}
	return ""
}

// siblings returns the sizes of the files of o, by the patterns of their names. If several files have the same
// pattern, it returns the smallest size. It returns no sizes if o is not of the same kind as c.
func (c candidate) siblings(o candidate) map[string]int64 {
	sizes := map[string]int64{}
	if o.dir != c.dir || naming.Pattern(filepath.Base(o.path)) != naming.Pattern(filepath.Base(c.path)) {
		return sizes
	}
	for _, other := range o.files {
		kind := naming.Pattern(other.name)
		if size, ok := sizes[kind]; other.size > 0 && (!ok || other.size < size) {
			sizes[kind] = other.size
		}
	}
	return sizes
}

// sizeBeside formats the number of bytes n. It gives the exact number if n and other would otherwise look the
// same.
func sizeBeside(n, other int64) string {
	if SizeText(n) == SizeText(other) {
		return fmt.Sprintf("%d bytes", n)
	}
	return SizeText(n)
}

// SizeText formats a number of bytes, as in "4.1 MB".
func SizeText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/1000, 0
	for size >= 999.5 && unit < len("kMGT")-1 {
		size, unit = size/1000, unit+1
	}
	if size < 10 {
		return fmt.Sprintf("%.1f %cB", size, "kMGT"[unit])
	}
	return fmt.Sprintf("%.0f %cB", size, "kMGT"[unit])
}
