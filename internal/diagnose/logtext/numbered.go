package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// numbers has the forms in which an editor, cat -n, grep -n or the page of a CI system writes the number before a line.
var numbers = []*textmatch.Pattern{
	textmatch.New(`^\[(\d{1,7})\](?: |$)`),
	textmatch.New(`^ *(\d{1,7})[:|](?: |$)`),
	textmatch.New(`^ *(\d{1,7})\t`),
	textmatch.New(`^ *(\d{1,7})(?: |$)`),
}

// Limits on what counts as numbers of lines.
const (
	numberedLines = 4 // least number of lines
	// fromFirst is the least number of lines if the first number is 1. Fewer numbers may be those of ranks that have
	// printed one line each.
	fromFirst   = 12
	aboveRanks  = 20 // numbers whose first is higher than this are not those of ranks
	numberedGap = 40 // largest step from one number to the next
)

// unnumber removes the numbers of lines if they increase from line to line, mostly by one. It also removes the "$" that
// an editor writes at the end of each line.
func unnumber(lines []job.Line) {
	for _, p := range numbers {
		first, last, all, marked, ones, ends := -1, -1, 0, 0, 0, 0
		for _, l := range lines {
			if l.Text == "" {
				continue
			}
			all++
			if all > sample && marked == 0 {
				break
			}
			m := p.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			n := Number(m[1])
			if last >= 0 && (n <= last || n > last+numberedGap) {
				marked = -1
				break
			}
			if n == last+1 {
				ones++
			}
			if first < 0 {
				first = n
			}
			if marked, last = marked+1, n; strings.HasSuffix(l.Text, "$") {
				ends++
			}
		}
		few := marked < numberedLines || first <= aboveRanks && (first != 1 || marked < fromFirst)
		if few || (all-marked)*20 > all || ones*2 < marked {
			continue
		}
		for i := range lines {
			t := lines[i].Text
			if at := p.FindStringIndex(t); at != nil {
				t = t[at[1]:]
			}
			if ends == marked {
				t = strings.TrimSuffix(t, "$")
			}
			lines[i].Text = t
		}
		return
	}
}
