package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
)

var (
	bold   = ansi.Style{}.Bold()
	faint  = ansi.Style{}.Faint()
	header = ansi.Style{}.Reverse(true)
	alarm  = ansi.Style{}.Bold().ForegroundColor(ansi.Red)
	notice = ansi.Style{}.ForegroundColor(ansi.Yellow)
)

// headLines is the number of lines above the middle. mostBelow is the maximum number of messages below it.
const (
	headLines = 4
	mostBelow = 8
)

// help explains the keys.
var help = []string{
	"q  quit                      s  where the ranks are, in their code",
	"n  sort by number            h  by host",
	"t  by step, lowest first     i  by silence, longest first",
	"c  by CPU, highest first     m  by memory, largest first",
	"r  the other way round       u  unusual ranks first, or not",
	"arrows, PgUp, PgDn, Home, End  scroll",
	"",
	"STATE  what the process of the rank does; ranks that wait for others may sleep",
	"IDLE   the time since the last new step      SILENT  since the last output",
	"/MIN   steps per minute                      CPU     in percent of one core",
	"!      this rank differs from the others",
}

// news returns the number of messages that the screen shows.
func (s *Screen) news() int { return min(len(s.data.News), mostBelow, max(1, s.Height/5)) }

// room returns how many lines the middle has.
func (s *Screen) room() int { return max(1, s.Height-headLines-s.news()-1) }

// Lines returns at most Height lines. No line is longer than Width.
func (s *Screen) Lines() []string {
	lines := append(s.head(), s.body()...)
	for len(lines) < headLines+s.room() {
		lines = append(lines, "")
	}
	for _, n := range s.data.News[len(s.data.News)-s.news():] {
		style := ansi.Style{}
		if strings.HasPrefix(n.Text, "warning: ") {
			style = notice
		}
		lines = append(lines, faint.Styled(n.Time.Local().Format(time.TimeOnly))+" "+style.Styled(n.Text))
	}
	lines = append(lines, s.foot())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.Width, "")
	}
	if len(lines) > s.Height && s.Height > 0 {
		lines = lines[:s.Height]
	}
	return lines
}

// head returns the lines about the run and its gang.
func (s *Screen) head() []string {
	d := s.data
	first := bold.Styled(cmp.Or(d.Run, "...")) + "  " + string(d.State)
	if a := d.Last(); a != nil {
		first += fmt.Sprintf("  attempt %d", a.Number)
	}
	if d.Started != nil {
		end := d.At
		if d.Ended != nil {
			end = *d.Ended
		}
		first += "  up " + view.Short(end.Sub(*d.Started))
	}
	where := text.Count(len(d.Now), "rank")
	if d.Hosts > 0 {
		where += " on " + text.Count(d.Hosts, "host")
	}
	if d.GPUs > 0 {
		where += ", " + text.Count(d.GPUs, "GPU")
	}
	first += "  " + where
	words := strings.Join(s.words(), ", ")
	if d.Trouble != "" {
		words += "  " + alarm.Styled(d.Trouble)
	}
	return []string{first, words, s.alarm(), s.titles()}
}

// words returns words about the progress of the gang.
func (s *Screen) words() []string {
	var words []string
	a := s.data.Last()
	switch {
	case s.data.Gang != nil:
		words = view.GangWords(*s.data.Gang)
	case a != nil && a.Step >= 0:
		words = []string{fmt.Sprintf("step %d", a.Step)}
	case s.data.Reason != "":
		words = []string{text.Printable(s.data.Reason)}
	}
	if a != nil && a.LossIs != "" {
		words = slices.Insert(words, min(1, len(words)), "loss "+a.LossIs)
	} else if a != nil && a.Loss != nil {
		words = slices.Insert(words, min(1, len(words)), fmt.Sprintf("loss %.4g", *a.Loss))
	}
	return words
}

// alarm returns the worst problem of the present attempt. It returns "" if there is none.
func (s *Screen) alarm() string {
	if s.data.State.Final() && s.data.Reason != "" {
		return text.Printable(s.data.Reason)
	}
	if a := s.data.Last(); a != nil && a.Hang != nil {
		return alarm.Styled("hang: " + text.Printable(a.Hang.Text))
	}
	if g := s.data.Gang; g != nil && len(g.Odd) > 0 {
		return notice.Styled("unusual: " + text.Ranks(g.Odd))
	}
	return ""
}

// titles returns the line above the middle.
func (s *Screen) titles() string {
	title := ""
	switch s.view {
	case showRanks:
		title = s.row(s.columns(), func(c view.Column) string {
			if c.Name == s.sort {
				return "*" + c.Name
			}
			return c.Name
		}, nil)
		title = " " + title
	case showStacks:
		title = " where the ranks are (s asks again, Esc goes back)"
	case showHelp:
		title = " keys (Esc goes back)"
	}
	return header.Styled(title + strings.Repeat(" ", max(0, s.Width-ansi.StringWidth(title))))
}

// body returns the lines of the middle that fit.
func (s *Screen) body() []string {
	if s.view != showRanks {
		all := s.middle()
		from := max(0, min(s.offset, len(all)-s.room()))
		return all[from:min(len(all), from+s.room())]
	}
	ranks := s.ranks()
	from := max(0, min(s.offset, len(ranks)-s.room()))
	ranks = ranks[from:min(len(ranks), from+s.room())]
	columns := s.columns()
	var lines []string
	for _, r := range ranks {
		mark := " "
		if r.Concern() > 0 {
			mark = alarm.Styled("!")
		}
		line := s.row(columns, func(c view.Column) string { return c.Cell(r) }, func(c view.Column) bool {
			return c.Odd != "" && r.Vitals != nil && r.Vitals.Is(c.Odd)
		})
		if words := r.Remarks(); words != "" {
			line += "  " + notice.Styled(words)
		}
		if r.Exit != nil {
			line = faint.Styled(line)
		}
		lines = append(lines, mark+line)
	}
	return lines
}

// middle returns the text that is shown instead of the ranks.
func (s *Screen) middle() []string {
	switch {
	case s.view == showHelp:
		return help
	case s.asking:
		return []string{"asking the run's controller where its ranks are ..."}
	}
	return s.stacks
}

// sized is a column with its width.
type sized struct {
	view.Column
	width int
}

// columns returns the columns that have values and fit into the width of the screen.
func (s *Screen) columns() []sized {
	var all []sized
	for _, c := range view.Columns() {
		c := sized{c, len(c.Name)}
		if c.Name == s.sort {
			c.width++
		}
		known := false
		for _, r := range s.data.Now {
			if cell := c.Cell(r); cell != "" {
				known = true
				c.width = max(c.width, ansi.StringWidth(cell))
			}
		}
		if known {
			all = append(all, c)
		}
	}
	for {
		total, last := 1, -1
		for i, c := range all {
			total += c.width + 2
			if c.Column.Order > 0 && (last < 0 || c.Column.Order >= all[last].Column.Order) {
				last = i
			}
		}
		if total-2 <= s.Width || last < 0 {
			return all
		}
		all = slices.Delete(all, last, last+1)
	}
}

// row returns the line of a rank. odd reports which cells are marked; it may be nil.
func (s *Screen) row(columns []sized, cell func(view.Column) string, odd func(view.Column) bool) string {
	var cells []string
	for _, c := range columns {
		words := cell(c.Column)
		pad := strings.Repeat(" ", max(0, c.width-ansi.StringWidth(words)))
		if odd != nil && odd(c.Column) {
			words = alarm.Styled(words)
		}
		if c.Left {
			words += pad
		} else {
			words = pad + words
		}
		cells = append(cells, words)
	}
	return strings.Join(cells, "  ")
}

// foot returns the last line, which shows the visible part of the middle and the keys.
func (s *Screen) foot() string {
	total, room := s.length(), s.room()
	span := ""
	if total > room {
		from := max(0, min(s.offset, total-room))
		span = fmt.Sprintf("%d-%d of %d  ", from+1, from+room, total)
	}
	return faint.Styled(span + "q quit  ? help  s stacks  sort: n h t i c m  r reverse  u unusual first")
}
