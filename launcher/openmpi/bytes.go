package openmpi

import "strings"

// The shell parser takes only UTF-8, and paths and variables may hold any bytes.
// While it parses, a private character stands for each byte that is not ASCII;
// none of them means anything to a shell.
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

// asBytes puts the bytes back into what was parsed.
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
