package textmatch

import (
	"slices"
	"strings"
	"testing"
)

func TestIndex(t *testing.T) {
	x := IndexOf([]string{"out of memory", "memory", "segmentation fault", "oom-kill"})
	for line, want := range map[string][]int{
		"":                         nil,
		"mem":                      nil,
		"CUDA out of Memory":       {0, 1},
		"memory, memory":           {1},
		"Segmentation fault (core": {2},
		"oom-kil":                  nil,
		"xoom-kill":                {3},
		"außer memory":             {1},
	} {
		got := x.Find(line, nil)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: found %v, want %v", line, got, want)
		}
	}
}

// FuzzIndex checks that an index finds what strings.Contains finds.
func FuzzIndex(f *testing.F) {
	f.Add("a text with MEMORY", "memory")
	f.Fuzz(func(t *testing.T, line, text string) {
		text = strings.ToLower(text)
		for _, c := range line + text {
			if c >= 0x80 {
				t.Skip("only ASCII is folded")
			}
		}
		if len(text) < 4 {
			t.Skip("a text has at least 4 bytes")
		}
		if got, want := len(IndexOf([]string{text}).Find(line, nil)) > 0, strings.Contains(strings.ToLower(line), text); got != want {
			t.Errorf("%q in %q: found %v, want %v", text, line, got, want)
		}
	})
}
