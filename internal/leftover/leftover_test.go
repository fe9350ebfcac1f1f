package leftover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parse reads a table of processes, one a line: "PID PARENT NAME [GANG] [agent] [zombie] [other's]".
func parse(t *testing.T, text string) Table {
	t.Helper()
	table := Table{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		p := Process{State: "S", Mine: true}
		if n, err := fmt.Sscan(line, &p.PID, &p.Parent, &p.Name); n != 3 {
			t.Fatalf("%q: %v", line, err)
		}
		for _, word := range fields[3:] {
			switch word {
			case "agent":
				p.Agent = true
			case "zombie":
				p.State = "Z"
			case "other's":
				p.Mine = false
			default:
				p.Tag = TagOf(word)
			}
		}
		table[p.PID] = p
	}
	return table
}

func pids(found []Process) []int {
	var all []int
	for _, p := range found {
		all = append(all, p.PID)
	}
	slices.Sort(all)
	return all
}

// In this table, the agent that asks is process 40. It is below watchdogs, and below a controller that a shell has
// started.
const asking = `
1 0 init
10 1 bash
20 10 gangrun
30 20 gang-watchdog agent
31 30 gangrun agent
40 31 gangrun agent
`

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		processes, run string
		want           []int
	}{
		"an orphan of a dead gang":             {"100 1 sh old/1", "", []int{100}},
		"what stands below it":                 {"100 1 sh old/1\n101 100 python old/1\n102 101 sleep old/1", "", []int{100, 101, 102}},
		"given to a subreaper":                 {"90 1 slurmstepd\n100 90 python old/1", "", []int{100}},
		"given to a subreaper that is gone":    {"100 90 python old/1", "", []int{100}},
		"a rank":                               {"90 1 gang-watchdog agent\n91 90 gangrun agent\n92 91 gangrun old/1 agent\n100 92 sh old/1", "", nil},
		"what an outer watchdog is ending":     {"90 1 gang-watchdog agent\n100 90 sh old/1", "", nil},
		"an agent whose watchdogs were killed": {"92 1 gangrun old/1 agent\n100 92 sh old/1", "", nil},
		"no tag":                               {"100 1 python\n101 10 vim", "", nil},
		"the tag that this agent has given":    {"100 40 python new/1", "new", nil},
		"an ended one with a child":            {"100 1 sh old/1 zombie\n101 100 sleep old/1", "", []int{101}},
		"ended":                                {"100 1 sh old/1 zombie", "", nil},
		"another user's":                       {"100 1 sh old/1 other's", "", nil},
		"another user's, of this run":          {"100 1 sh new/1 other's", "new", []int{100}},
		"a gang inside of a dead one": {
			"100 1 sh old/1\n101 100 gangrun old/1\n102 101 gang-watchdog old/1 agent\n103 102 gangrun inner/1 agent\n104 103 python inner/1", "", []int{100, 101},
		},
	} {
		if got := pids(parse(t, asking+c.processes).Find(40, c.run)); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// TestFindInLeftScript checks the case that a script that a dead gang has left runs gangrun.
func TestFindInLeftScript(t *testing.T) {
	table := parse(t, `
1 0 init
10 1 bash old/1
11 10 monitor old/1
20 10 gangrun old/1
30 20 gang-watchdog old/1 agent
31 30 gangrun old/1 agent
40 31 gangrun old/1 agent
50 1 python dead/1
`)
	if got := pids(table.Find(40, "")); !slices.Equal(got, []int{50}) {
		t.Errorf("found %v, want what the script has nothing to do with", got)
	}
}

// In this table, rank 40 of a gang runs gangrun. The agent that asks is process 80 of that gangrun.
const nested = `
1 0 init
20 1 gangrun
30 20 gang-watchdog agent
31 30 gangrun agent
32 31 gangrun outer/1 agent
40 32 gangrun outer/1
41 32 python outer/1
50 40 gang-watchdog outer/1 agent
51 50 gangrun outer/1 agent
80 51 gangrun outer/1 agent
`

func TestFindNested(t *testing.T) {
	for name, c := range map[string]struct {
		processes, run string
		want           []int
	}{
		"other ranks of the outer gang":                {"", "inner", nil},
		"what an earlier attempt of this run has left": {"100 32 sh inner/1", "inner", []int{100}},
		"before the run is known":                      {"100 32 sh inner/1", "", nil},
		"of another inner run, which the outer ends":   {"100 32 sh other/1", "inner", nil},
	} {
		if got := pids(parse(t, nested+c.processes).Find(80, c.run)); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

func TestAlive(t *testing.T) {
	const other = "90 1 gang-watchdog agent\n91 90 gangrun agent\n92 91 gangrun run/1 agent\n"
	for name, c := range map[string]struct {
		processes string
		want      []int
	}{
		"an earlier attempt below another agent": {other + "100 92 sh run/1\n101 100 sleep run/1", []int{100, 101}},
		"given to its outer watchdog":            {"90 1 gang-watchdog agent\n100 90 sh run/1", []int{100}},
		"this attempt":                           {other + "100 92 sh run/2", nil},
		"another run":                            {other + "100 92 sh runs/1", nil},
		"below this agent":                       {"100 40 sh run/1", nil},
		"ended":                                  {other + "100 92 sh run/1 zombie", nil},
		"an orphan, which Find finds":            {"100 1 sh run/1", nil},
	} {
		if got := pids(parse(t, asking+c.processes).Alive(40, "run/2")); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

func TestTag(t *testing.T) {
	a := TagOf("20261122-101010-abcd/3")
	if !a.valid() || a.attempt() != 3 || !a.Of("20261122-101010-abcd") || a.Of("20261122-101010-abce") || a.Of("") {
		t.Errorf("%#x", uint64(a))
	}
	if b := TagOf("20261122-101010-abcd/4"); a == b || !a.sameRun(b) {
		t.Errorf("%#x, %#x", uint64(a), uint64(b))
	}
	for _, limit := range []Tag{0, 1, 1 << 20, 1<<63 - 1, 1<<64 - 1} {
		if limit.valid() {
			t.Errorf("%#x is a tag", uint64(limit))
		}
	}
	if a >= 1<<62 {
		t.Errorf("%#x is no limit that everybody may set", uint64(a))
	}
}
