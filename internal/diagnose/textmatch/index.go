package textmatch

import (
	"slices"
	"strings"
)

// Index finds which of many texts occur in a line, in one pass over the line. At each byte of the line, it
// looks up the next four bytes. It compares a whole text only if the text begins with these four bytes.
type Index struct {
	maybe [1 << 10]uint64 // one bit for each hash of four bytes
	begin map[uint32][]needle
}

type needle struct {
	text   string
	number int
}

// IndexOf returns an index of texts. The number of each text is its position in texts. Each text must have
// at least 4 bytes, and must be in lower case.
func IndexOf(texts []string) *Index {
	x := &Index{}
	for i, text := range texts {
		x.Add(text, i)
	}
	return x
}

// Add adds a text and its number to the index. The text must have at least 4 bytes, and must be in lower
// case. Several texts may have the same number.
func (x *Index) Add(text string, number int) {
	if x.begin == nil {
		x.begin = map[uint32][]needle{}
	}
	key := uint32(0)
	for i := range 4 {
		key = key<<8 | uint32(text[i])
	}
	h := spread(key)
	x.maybe[h>>6] |= 1 << (h & 63)
	x.begin[key] = append(x.begin[key], needle{text, number})
}

func spread(key uint32) uint32 { return key * 2654435761 >> 16 }

var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = strings.ToLower(string(rune(i)))[0]
		if i >= 0x80 {
			t[i] = byte(i)
		}
	}
	return t
}()

// Find appends to found the numbers of the texts that occur in text, each number once. It ignores case.
func (x *Index) Find(text string, found []int) []int {
	key := uint32(0)
	for i := 0; i < len(text); i++ {
		key = key<<8 | uint32(lower[text[i]])
		if i < 3 {
			continue
		}
		h := spread(key)
		if x.maybe[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, n := range x.begin[key] {
			if hasPrefixFold(text[i-3:], n.text) && !slices.Contains(found, n.number) {
				found = append(found, n.number)
			}
		}
	}
	return found
}

// Contains reports whether any of the texts of the index occurs in text. It ignores case.
func (x *Index) Contains(text string) bool {
	key := uint32(0)
	for i := 0; i < len(text); i++ {
		key = key<<8 | uint32(lower[text[i]])
		h := spread(key)
		if x.maybe[h>>6]&(1<<(h&63)) == 0 || i < 3 {
			continue
		}
		for _, n := range x.begin[key] {
			if hasPrefixFold(text[i-3:], n.text) {
				return true
			}
		}
	}
	return false
}

// hasPrefixFold reports whether text begins with prefix, ignoring case. prefix is in lower case.
func hasPrefixFold(text, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower[text[i]] != prefix[i] {
			return false
		}
	}
	return true
}
