// Package top shows a run on a terminal while it goes on: its gang, its ranks, and where they are.
package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/view"
)

// Data is what there is to show of a run.
type Data struct {
	view.Status
	Hosts, GPUs int // of the gang; 0 while it has no place
	News        []view.News
	At          time.Time
	Trouble     string // why the data may be old; empty if it is not
}

// Screen is what the terminal shows. It is pure: keys and data come in, lines go out.
type Screen struct {
	Width, Height int

	data     Data
	sort     string // the name of a column
	reverse  bool
	oddFirst bool
	offset   int // how many ranks, or lines of stacks, are above what is shown

	view   pane
	asking bool // the stacks have been asked for
	stacks []string
}

// pane is what the middle of the screen shows.
type pane int

const (
	showRanks pane = iota
	showStacks
	showHelp
)

// Action is what a key asks for beyond the screen.
type Action int

// The actions.
const (
	Nothing   Action = iota
	Quit             // end the program
	AskStacks        // find out where the ranks are, and call SetStacks
)

// NewScreen returns a screen, with unusual ranks above the others.
func NewScreen() *Screen { return &Screen{sort: "RANK", oddFirst: true} }

// SetData replaces what is shown.
func (s *Screen) SetData(d Data) { s.data = d }

// SetStacks shows where the ranks are, or why that is not known.
func (s *Screen) SetStacks(lines []string) {
	s.stacks, s.asking = lines, false
}

// sortKeys are the columns by which a key sorts.
var sortKeys = map[string]string{"n": "RANK", "h": "HOST", "t": "STEP", "i": "SILENT", "c": "CPU", "m": "RSS"}

// Key takes a key, by the name that it has in bubbletea.
func (s *Screen) Key(name string) Action {
	switch name {
	case "q", "ctrl+c":
		return Quit
	case "esc":
		s.view, s.offset = showRanks, 0
	case "s":
		s.view, s.offset = showStacks, 0
		if s.asking {
			return Nothing
		}
		s.asking = true
		return AskStacks
	case "?":
		s.view, s.offset = showHelp, 0
	case "u":
		s.oddFirst, s.offset = !s.oddFirst, 0
	case "r":
		s.reverse, s.offset = !s.reverse, 0
	case "up", "k":
		s.offset--
	case "down", "j":
		s.offset++
	case "pgup":
		s.offset -= s.room()
	case "pgdown", "space", " ":
		s.offset += s.room()
	case "home", "g":
		s.offset = 0
	case "end", "G":
		s.offset = 1 << 30
	default:
		if column, ok := sortKeys[name]; ok {
			s.view, s.sort, s.reverse, s.offset = showRanks, column, false, 0
		}
	}
	s.offset = max(0, min(s.offset, s.length()-s.room()))
	return Nothing
}

// length is how many lines the middle would have if it were high enough.
func (s *Screen) length() int {
	if s.view == showRanks {
		return len(s.data.Now)
	}
	return len(s.middle())
}

// ranks returns the ranks in the order in which they are shown.
func (s *Screen) ranks() []view.RankStatus {
	ranks := slices.Clone(s.data.Now)
	less := func(a, b view.RankStatus) bool { return a.Rank < b.Rank }
	for _, c := range view.Columns() {
		if c.Name == s.sort && c.Less != nil {
			less = c.Less
		}
	}
	slices.SortStableFunc(ranks, func(a, b view.RankStatus) int {
		if more := b.Concern() - a.Concern(); s.oddFirst && more != 0 {
			return more
		}
		if s.reverse {
			a, b = b, a
		}
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return cmp.Compare(a.Rank, b.Rank)
	})
	return ranks
}
