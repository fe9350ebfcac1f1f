package mpiexec

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/topology/inventory"
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

// hostFile reads a hostfile. Each line is a turn.
func hostFile(path string, data []byte) ([]host, error) {
	lines, err := inventory.HostfileLines(path, data)
	if err != nil {
		return nil, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	hosts := make([]host, len(lines))
	for i, l := range lines {
		hosts[i] = host{name: l.Host, slots: l.Slots}
		if l.User != "" {
			hosts[i].name = l.User + "@" + l.Host
		}
	}
	return hosts, nil
}
