package logtext

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Plain returns a line without terminal escapes, without text that was overwritten after a carriage return, and without
// a rank that a library has written at the beginning of the line. Plain also translates messages of the C library and
// of shells into English.
func Plain(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if i := strings.LastIndexByte(text, '\r'); i >= 0 {
		text = text[i+1:]
	}
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = escapes.ReplaceAllString(text, "")
	}
	if text != "" && (text[0] == '[' || text[0] == '(') {
		if m := prefixes.FindStringIndex(text); m != nil {
			text = text[m[1]:]
		}
	}
	return English(text)
}

var (
	escapes  = textmatch.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\a\x1b]*(?:\a|\x1b\\)|[@-Z\\-_])`)
	prefixes = textmatch.New(`^(?:\[rank\d+\]: ?|\[default\d+\]: ?|\((?:\w[\w.]* )?(?:pid|ip)=[^)]*\) )`)
)

// Short cuts text to one printable line of at most n runes.
func Short(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > n {
		text = string(runes[:n-3]) + "..."
	}
	return text
}

// Number returns the number that text consists of. It returns 0 if text is not a number.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
