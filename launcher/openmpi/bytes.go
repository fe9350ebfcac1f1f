package openmpi

import "strings"

// The shell parser accepts only UTF-8, but paths and variables may contain any bytes. So each byte that is not ASCII is
// replaced by a private character before the parsing.
const private = 0xe000

// asRunes returns line with a private character for each byte that is not ASCII.
func asRunes(line string) string {
	var b strings.Builder
	for i := range len(line) {
		if line[i] < 0x80 {
			b.WriteByte(line[i])
		} else {
			b.WriteRune(private + rune(line[i]))
		}
	}
	return b.String()
}

// asBytes replaces the private characters in words by the original bytes.
func asBytes(words []string) []string {
	for i, word := range words {
		var b strings.Builder
		for _, r := range word {
			if r >= private+0x80 && r <= private+0xff {
				b.WriteByte(byte(r - private))
			} else {
				b.WriteRune(r)
			}
		}
		words[i] = b.String()
	}
	return words
}
