package job

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// units are the units of sizes, the largest first.
var units = []struct {
	name  string
	bytes Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

// ParseSize reads a whole number of bytes with its unit, as in 8GiB or 500MB. 0 needs no unit.
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > int64(1<<62/u.bytes) {
			break
		}
		return Size(n) * u.bytes, nil
	}
	if text == "0" {
		return 0, nil
	}
	return 0, fmt.Errorf("%q is not a size with its unit, as in 8GiB or 500MB", text)
}

// String returns the size in the largest unit in which it is a whole number.
func (s Size) String() string {
	for _, u := range units {
		if s >= u.bytes && s%u.bytes == 0 && (u.bytes == 1 || strings.Contains(u.name, "i") || s%(1<<10) != 0) {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return "0"
}
