package finish

import (
	"strconv"
	"strings"
)

// figure is a number in a line. word is the word before the number, and total the number after "/" or "of", or 0.
type figure struct {
	word     string
	n, total int
}

const (
	maxFigures = 4 // figures of a line that are read
	maxWord    = 24
)

// figures returns the numbers of a line that follow a word or precede a total, as in "step 12", "step=12" and "step 12
// of 40".
func figures(t string) (all []figure) {
	for i := 0; i < len(t) && len(all) < maxFigures; {
		if t[i] < '0' || t[i] > '9' {
			i++
			continue
		}
		begin := i
		n, end := number(t, i)
		if i = end; begin > 0 && (t[begin-1] == '.' || t[begin-1] == '-' || letter(t[begin-1])) || end < len(t) && (letter(t[end]) || t[end] == ':' || t[end] == '.' && end+1 < len(t) && t[end+1] >= '0' && t[end+1] <= '9') {
			continue
		}
		f := figure{word: wordBefore(t[:begin]), n: n}
		for _, sep := range [...]string{"/", " / ", " of "} {
			if rest, ok := strings.CutPrefix(t[end:], sep); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				f.total, i = number(t, end+len(sep))
			}
		}
		if f.word != "" || f.total > 0 {
			all = append(all, f)
		}
	}
	return all
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// number returns the number that begins at byte i of a text, and the index of the byte after it.
func number(t string, i int) (n, end int) {
	for end = i; end < len(t) && t[end] >= '0' && t[end] <= '9'; end++ {
	}
	n, _ = strconv.Atoi(t[i:min(end, i+9)])
	return n, end
}

// wordBefore returns the word at the end of a text, in lower case. It ignores the characters between a name and its
// value.
func wordBefore(t string) string {
	t = strings.TrimRight(t, " \t:=#[(\"'")
	i := len(t)
	for i > 0 && len(t)-i <= maxWord && letter(t[i-1]) {
		i--
	}
	return strings.ToLower(t[i:])
}
