// Package top shows a run on a terminal while it goes on: its gang, its ranks, and their stacks.
package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/view"
)

// Data is what the screen shows of a run.
type Data struct {
	view.Status
	Hosts, GPUs int // of the gang; 0 before it has a placement
	News        []view.News
	At          time.Time
	Trouble     string // why the data may be out of date; empty if it is not
}

// Screen computes the lines on the terminal from keys and data. It has no effects.
type Screen struct {
	Width, Height int

	data     Data
	sort     string // the name of a column
	reverse  bool
	oddFirst bool
	offset   int // number of ranks, or lines of stacks, above the first that is shown

	view   pane
	asking bool // the user has asked for the stacks, and they have not come yet
	stacks []string
}

// pane is what the middle of the screen shows.
type pane int

const (
	showRanks pane = iota
	showStacks
	showHelp
)

// Action is what the caller of Key has to do.
type Action int

// The actions.
const (
	Nothing   Action = iota
	Quit             // end the program
	AskStacks        // collect the stacks and call SetStacks
)

// NewScreen returns a screen that first shows the ranks that differ from the others.
func NewScreen() *Screen { return &Screen{sort: "RANK", oddFirst: true} }

// SetData replaces the data.
func (s *Screen) SetData(d Data) { s.data = d }

// SetStacks sets the lines that show the stacks, or why there are none.
func (s *Screen) SetStacks(lines []string) {
	s.stacks, s.asking = lines, false
}

// sortKeys are the keys that sort the ranks, with the columns.
var sortKeys = map[string]string{"n": "RANK", "h": "HOST", "t": "STEP", "i": "SILENT", "c": "CPU", "m": "RSS"}

// Key handles a key. The name is the one that bubbletea has for it.
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

// length returns how many lines the middle needs.
func (s *Screen) length() int {
	if s.view == showRanks {
		return len(s.data.Now)
	}
	return len(s.middle())
}

// ranks returns the ranks in the order of the screen.
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
