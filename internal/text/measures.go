package text

import (
	"fmt"
	"strconv"
	"time"
)

// Bytes writes a number of bytes in the unit that fits, as in "1.5 GiB".
func Bytes(n int64) string {
	if n < 1<<10 {
		return Count(int(n), "byte")
	}
	value, unit := float64(n)/(1<<10), 0
	for ; value >= 1000 && unit < 4; unit++ {
		value /= 1 << 10
	}
	digits := 0
	if value < 10 {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// Span writes a duration as precisely as people want it, as in "1.3 s" or "12 min".
func Span(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
}

// Rate writes a rate in the decimal multiple of the unit that fits, as in "1.5 GB/s".
func Rate(value float64, unit string) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G", "T", "P"} {
		if value < 1000 {
			break
		}
		value, prefix = value/1000, p
	}
	digits := 0
	if value < 10 {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + prefix + unit
}
