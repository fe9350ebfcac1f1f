package roster

import (
	"slices"
	"testing"
)

// TestIntroduce checks that several logs get ranks if the lines of each name one rank. It is not enough if one log
// does.
func TestIntroduce(t *testing.T) {
	for name, c := range map[string]struct {
		logs []Unranked
		want []int
	}{
		"one rank each":         {[]Unranked{{Text: []string{"[r1] it 1", "an error"}}, {Text: []string{"[r0] it 1"}}}, []int{1, 0}},
		"a log of all ranks":    {[]Unranked{{Text: []string{"[r1] it 1", "[r0] it 1"}}, {Text: []string{"[r0] it 1"}}}, []int{-1, -1}},
		"two logs of a rank":    {[]Unranked{{Text: []string{"[r1] it 1"}}, {Text: []string{"[r1] it 1"}}}, []int{-1, -1}},
		"only one with a rank":  {[]Unranked{{Text: []string{"[r0] it 1"}}, {Text: []string{"started"}}}, []int{-1, -1}},
		"said at the beginning": {[]Unranked{{Text: []string{"rank 1 of 2"}}, {Text: []string{"started"}}}, []int{1, -1}},
	} {
		if got := Introduce(c.logs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
