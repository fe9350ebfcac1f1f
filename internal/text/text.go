// Package text writes numbers of things, lists and spans in English. It also makes text from
// other programs safe to print.
package text

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count writes a number of things, as in "1 rank", "2 ranks" or "3 processes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + Plural(noun)
}

// Plural returns the plural of a regular English noun.
func Plural(noun string) string {
	for _, hiss := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, hiss) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
		return stem + "ies"
	}
	return noun + "s"
}

// And writes a list as in "a", "a and b" or "a, b and c".
func And(names []string) string { return joined(names, " and ") }

// Or writes a list as in "a", "a or b" or "a, b or c".
func Or(names []string) string { return joined(names, " or ") }

func joined(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}

// Some writes the first names of a list, as in "a, b and 3 more". It writes at most limit
// names.
func Some(names []string, limit int) string {
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}

// Spans writes ascending numbers as in "0-3,8". If there are more than limit spans, it writes
// "0-3,8 and 5 more", where 5 is how many numbers are left out. A limit of 0 means no limit.
func Spans(numbers []int, limit int) string {
	var spans []string
	for i := 0; i < len(numbers); {
		if limit > 0 && len(spans) == limit {
			return fmt.Sprintf("%s and %d more", strings.Join(spans, ","), len(numbers)-i)
		}
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		span := strconv.Itoa(numbers[i])
		if j > i {
			span += "-" + strconv.Itoa(numbers[j])
		}
		spans, i = append(spans, span), j+1
	}
	return strings.Join(spans, ",")
}

// Ranks names ranks, which must be in ascending order, as in "rank 1" or "ranks 0-3,8". It names at most eight spans.
func Ranks(ranks []int) string {
	word := "ranks "
	if len(ranks) == 1 {
		word = "rank "
	}
	return word + Spans(ranks, 8)
}

// sequences are the control sequences of a terminal for colours and movement. Longer ones,
// as for titles, stay, without what makes them act: a parser of them all would swallow text.
var sequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// Printable returns text as one line that a terminal shows as it is. It removes control sequences,
// such as those of colours. Tabs and line ends become spaces, and every other character that cannot
// be printed becomes U+FFFD. So a rank cannot print text that looks like a message of gangrun.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, sequences.ReplaceAllString(text, ""))
}

// Clip cuts text that has more than limit characters, and puts "..." at the end of it.
func Clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "..."
}

// Quote puts text of a user in quotes, and cuts it after 60 characters.
func Quote(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) <= limit {
		return strconv.Quote(text)
	}
	return strconv.Quote(string([]rune(text)[:limit])) + "..."
}
