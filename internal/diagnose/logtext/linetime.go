package logtext

import (
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// dateYear is the year of all times that are read from logs, because many logs do not name it. It is a leap year.
const dateYear = 2000

var (
	isoTime   = textmatch.New(`\b\d{4}[-/](\d{2})[-/](\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?`)
	glogTime  = textmatch.New(`\[?[IWEF](\d{2})(\d{2}) (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?`)
	namedTime = textmatch.New(`\b(?:(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(\d{1,2})) (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?`)
)

// Time returns t with the year 2000, so that it can be compared with the times that Read finds. Many logs do
// not name the year, so Read sets the year of all times to 2000.
func Time(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	t = t.UTC()
	return time.Date(dateYear, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// dateBytes is how far from the beginning of a line its time may stand.
const dateBytes = 80

// date sets the times of lines to those with which they begin. A line without a time gets the time of the line before
// it.
func date(lines []job.Line) {
	var last time.Time
	for i := range lines {
		if !lines[i].Time.IsZero() { // set by unstamp
			last = lines[i].Time
		} else if t := lineTime(lines[i].Text); !t.IsZero() {
			last = t
		}
		lines[i].Time = last
	}
}

// lineTime returns the time at the beginning of a line, in the year dateYear, or the zero time.
func lineTime(text string) time.Time {
	text = text[:min(len(text), dateBytes)]
	if strings.Count(text, ":") < 2 {
		return time.Time{}
	}
	if m := isoTime.FindStringSubmatch(text); m != nil {
		t := clock(Number(m[1]), m[2:])
		if zone, err := time.Parse("Z07:00", m[7]); err == nil && !t.IsZero() {
			_, offset := zone.Zone()
			t = t.Add(-time.Duration(offset) * time.Second)
		}
		return t
	}
	if m := glogTime.FindStringSubmatch(text); m != nil {
		return clock(Number(m[1]), m[2:])
	}
	if m := namedTime.FindStringSubmatch(text); m != nil {
		if month, err := time.Parse("Jan", m[1]); err == nil {
			return clock(int(month.Month()), m[2:])
		}
	}
	return time.Time{}
}

// clock returns the time with the given month. m has the texts of the day, hour, minute, second and fraction. The
// result is zero if a number is out of range.
func clock(month int, m []string) time.Time {
	day, hour, minute, second := Number(m[0]), Number(m[1]), Number(m[2]), Number(m[3])
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}
	}
	fraction := Number((m[4] + "000000000")[:9])
	return time.Date(dateYear, time.Month(month), day, hour, minute, second, fraction, time.UTC)
}
