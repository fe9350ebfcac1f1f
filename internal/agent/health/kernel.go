package health

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// kernelRule describes one kind of line of the kernel's log.
type kernelRule struct {
	sign     job.HealthSign
	severity job.Severity
	// word is a text that every line of this kind has, and pattern is the form of the whole line.
	word    string
	pattern func() *regexp.Regexp
	// what is the text of the sign; $1 and so on stand for the groups of pattern. Lines that give the same
	// text are counted together.
	what string
	hint string
	// pid is the number of the group of pattern that has a PID; 0 if there is none.
	pid int
}

// form returns a pattern that is compiled when it is first used, because that takes time and most hosts need
// no pattern.
func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// kernelCount counts the lines of the kernel's log that give the same sign.
type kernelCount struct {
	sign  Sign
	times int
	told  int // the count at the last report
}

const (
	maxKernel = 256 // limits the different signs of an attempt
	maxLine   = 160 // limits the characters of a line that is quoted
)

// line returns the sign that a line of the kernel's log shows, if the count of that sign is now a power of
// ten.
func (j *Judge) line(line string, ranks map[int]int) []Sign {
	sign, found := signOf(line, ranks)
	if !found {
		return nil
	}
	key := string(sign.Sign) + " " + sign.Text
	count := j.kernel[key]
	if count == nil {
		if len(j.kernel) == maxKernel {
			return nil
		}
		count = &kernelCount{sign: sign}
		j.kernel[key] = count
	}
	if count.times++; !powerOfTen(count.times) {
		return nil
	}
	count.told = count.times
	sign = count.with(line)
	return []Sign{sign}
}

// with returns the sign with its count and the latest line.
func (c *kernelCount) with(line string) Sign {
	s := c.sign
	if c.times > 1 {
		s.Count = c.times
		s.Text += fmt.Sprintf("; %d times so far", c.times)
	}
	if line != "" {
		s.Text += ": " + text.Clip(text.Printable(line), maxLine)
	}
	return s
}

func powerOfTen(n int) bool {
	for ; n%10 == 0; n /= 10 {
	}
	return n == 1
}

// Rest returns the signs whose counts have grown since they were reported. Judge must not be called after
// Rest.
func (j *Judge) Rest() (signs []Sign) {
	for _, c := range j.kernel {
		if c.times > c.told {
			signs = append(signs, c.with(""))
		}
	}
	return signs
}

// signOf returns the sign that a line of the kernel's log shows.
func signOf(line string, ranks map[int]int) (s Sign, found bool) {
	for i := range kernelRules {
		r := &kernelRules[i]
		if !strings.Contains(line, r.word) {
			continue
		}
		m := r.pattern().FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		s = Sign{Health: job.Health{Sign: r.sign, Severity: r.severity}, Hint: r.hint}
		s.Text = text.Printable(string(r.pattern().ExpandString(nil, r.what, line, m)))
		if r.pid > 0 {
			pid, _ := strconv.Atoi(line[m[2*r.pid]:m[2*r.pid+1]])
			if rank, ours := ranks[pid]; ours {
				s.Ranks = []int{rank}
				s.Text = text.Ranks(s.Ranks) + ": " + s.Text
			}
		}
		return s, true
	}
	return Sign{}, false
}
