package mpiexec

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

// hostWord reads NAME or NAME:SLOTS. A bare IPv6 address has no slots.
func hostWord(word string) host {
	inner, behind, bracketed := "", "", false
	if rest, ok := strings.CutPrefix(word, "["); ok {
		inner, behind, bracketed = strings.Cut(rest, "]")
	}
	if bracketed {
		word = inner
		if behind == "" {
			return host{name: word}
		}
		slots, err := strconv.Atoi(strings.TrimPrefix(behind, ":"))
		if err != nil || slots < 1 || behind[0] != ':' {
			return host{}
		}
		return host{name: word, slots: slots}
	}
	if strings.Count(word, ":") != 1 {
		return host{name: word}
	}
	name, text, _ := strings.Cut(word, ":")
	slots, err := strconv.Atoi(text)
	if err != nil || slots < 1 {
		return host{}
	}
	return host{name: name, slots: slots}
}

// hostFile reads a host file of either family: NAME, NAME:SLOTS or NAME
// slots=SLOTS a line; the other words of a line do not matter here.
func hostFile(path string, data []byte) ([]host, error) {
	var hosts []host
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		h := hostWord(words[0])
		for _, w := range words[1:] {
			if text, ok := strings.CutPrefix(w, "slots="); ok {
				n, err := strconv.Atoi(text)
				if err != nil || n < 1 {
					h.name = ""
				}
				h.slots = n
			}
		}
		if h.name == "" || h.slots > job.MaxRanks {
			return nil, failure.Usage("write NAME, NAME:SLOTS or NAME slots=SLOTS on each line", "mpiexec: %s:%d: %q names no host", path, number, strings.TrimSpace(line))
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}
