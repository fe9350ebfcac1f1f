package roster

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// tasksRow matches a row of the table of processes that the kernel prints when it kills one: the PID and the name.
var tasksRow = textmatch.New(`\[ *(\d{2,8})\] +\d+ +\d+ +\d+ .* (\S+)$`)

// InTasks returns the rank of a process that the kernel's table of processes lists, or -1. The table must list one
// process of the same name for each rank of the job. A launcher starts these processes one after another, so the rank
// is the place of the process in the order of their PIDs.
func InTasks(text []string, pid, ranks int) int {
	byName, name := map[string][]int{}, ""
	for _, t := range text {
		if m := tasksRow.FindStringSubmatch(t); m != nil {
			p := logtext.Number(m[1])
			if byName[m[2]] = append(byName[m[2]], p); p == pid {
				name = m[2]
			}
		}
	}
	pids := slices.Sorted(slices.Values(byName[name]))
	if pids = slices.Compact(pids); name == "" || len(pids) != ranks {
		return -1
	}
	return slices.Index(pids, pid)
}
