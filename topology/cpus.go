package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// unite returns the union of lists of CPUs such as "0-15,32-47", in ascending order. It
// ignores lists that are empty or cannot be read. It returns a single list as it is.
func unite(lists []string) string {
	slices.Sort(lists)
	if lists = slices.Compact(lists); len(lists) == 1 {
		return lists[0]
	}
	var all [][2]uint64
	for _, list := range lists {
		if spans, ok := cpuSpans(list); ok {
			all = append(all, spans...)
		}
	}
	slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	var parts []string
	for i := 0; i < len(all); {
		first, last := all[i][0], all[i][1]
		for i++; i < len(all) && all[i][0] <= last+1; i++ {
			last = max(last, all[i][1])
		}
		if first == last {
			parts = append(parts, strconv.FormatUint(first, 10))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(parts, ",")
}

// CountCPUs returns how many CPUs a list such as "0-15,32-47" has, or 0 if it is empty or
// cannot be read.
func CountCPUs(list string) (count int) {
	spans, ok := cpuSpans(list)
	if !ok {
		return 0
	}
	for _, s := range spans {
		count += int(s[1]-s[0]) + 1
	}
	return count
}

// cpuSpans parses a list of CPUs. It returns the first and the last CPU of each span.
func cpuSpans(list string) (spans [][2]uint64, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		low, high, isSpan := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 32)
		last := first
		if err == nil && isSpan {
			last, err = strconv.ParseUint(high, 10, 32)
		}
		if err != nil || last < first {
			return nil, false
		}
		spans = append(spans, [2]uint64{first, last})
	}
	return spans, true
}
