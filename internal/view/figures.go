package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/vitals"
)

// Short formats a duration, as in 4s, 3m12s, 5h03m or 12d04h. Below 100 days, the text has at most six characters.
func Short(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Size formats bytes in at most five characters, as in 812K, 3.4M or 21G. A K is 1024.
func Size(bytes float64) string {
	units := "BKMGTP"
	i := 0
	for bytes >= 999.5 && i < len(units)-1 {
		bytes /= 1024
		i++
	}
	if i > 0 && bytes < 9.95 {
		return fmt.Sprintf("%.1f%c", bytes, units[i])
	}
	return fmt.Sprintf("%.0f%c", bytes, units[i])
}

func percent(figure *float64) string {
	if figure == nil {
		return ""
	}
	return fmt.Sprintf("%.0f%%", *figure)
}

func number(n int64, known bool) string {
	if !known {
		return ""
	}
	return fmt.Sprint(n)
}

func rate(perMinute float64) string {
	switch {
	case perMinute <= 0:
		return ""
	case perMinute < 9.95:
		return fmt.Sprintf("%.1f", perMinute)
	}
	return fmt.Sprintf("%.0f", perMinute)
}

func idle(d *job.Duration) string {
	if d == nil {
		return ""
	}
	return Short(time.Duration(*d))
}

func gpu(g *job.GPUPulse, get func(job.GPUPulse) string) string {
	if g == nil {
		return ""
	}
	return get(*g)
}

// GangWords describes the progress and the load of a gang, as in "steps 118-120 of 300, 60/min, 3m00s left, CPU
// 382%, RSS 1.2G".
func GangWords(g vitals.Gang) []string {
	var words []string
	unit := "step"
	if g.ByEpoch {
		unit = "epoch"
	}
	if g.Highest >= 0 {
		at := fmt.Sprintf("%s %d", unit, g.Highest)
		if g.Lowest < g.Highest {
			at = fmt.Sprintf("%ss %d-%d", unit, g.Lowest, g.Highest)
		}
		if g.Total > 0 {
			at += fmt.Sprintf(" of %d", g.Total)
		}
		words = append(words, at)
	}
	if g.Rate > 0 {
		words = append(words, rate(g.Rate)+"/min")
	}
	if g.Still > 0 {
		words = append(words, "no step for "+Short(time.Duration(g.Still)))
	}
	if g.Left > 0 {
		words = append(words, Short(time.Duration(g.Left))+" left")
	}
	return append(words, fmt.Sprintf("CPU %.0f%%", g.CPU), "RSS "+Size(float64(g.RSS)))
}

// lifeLine returns the line of a status about the life of the gang.
func (s Status) lifeLine(now time.Time) string {
	words := GangWords(*s.Gang)
	if len(s.Gang.Odd) > 0 {
		words = append(words, "unusual: "+text.Ranks(s.Gang.Odd))
	}
	line := strings.Join(words, ", ")
	if age := now.Sub(*s.VitalsAt); age >= 2*time.Second {
		line += fmt.Sprintf("; measured %s ago", Short(age))
	}
	return line
}
