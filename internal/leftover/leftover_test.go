package leftover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// machine reads a table of processes: "PID PARENT NAME [GANG] [moved] [agent] [zombie]".
func machine(t *testing.T, text string) (Table, func(int) Details) {
	t.Helper()
	table, details := Table{}, map[int]Details{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var p Process
		if n, err := fmt.Sscan(line, &p.PID, &p.Parent, &p.Name); n != 3 {
			t.Fatalf("%q: %v", line, err)
		}
		p.State = "S"
		var d Details
		for _, word := range fields[3:] {
			switch word {
			case "moved":
				d.Moved = true
			case "agent":
				d.Agent = true
			case "zombie":
				p.State = "Z"
			default:
				d.Gang = word
			}
		}
		table[p.PID], details[p.PID] = p, d
	}
	return table, func(pid int) Details { return details[pid] }
}

func pids(found []Process) []int {
	var all []int
	for _, p := range found {
		all = append(all, p.PID)
	}
	slices.Sort(all)
	return all
}

// The agent that asks is 40, below watchdogs and a controller in a shell.
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
		"an orphan of a dead gang":                      {"100 1 sh old/1", "", []int{100}},
		"what stands below it, its environment cleared": {"100 1 sh old/1\n101 100 python\n102 101 sleep old/1", "", []int{100, 101, 102}},
		"a rank":                             {"90 1 gang-watchdog agent\n91 90 gangrun agent\n92 91 gangrun agent\n100 92 sh old/1", "", nil},
		"what an outer watchdog is ending":   {"90 1 gang-watchdog agent\n100 90 sh old/1", "", nil},
		"what a rank has given to sbatch":    {"90 1 slurmstepd\n100 90 bash old/1\n101 100 python old/1", "", nil},
		"what a rank has given to at":        {"90 1 atd\n100 90 sh old/1", "", nil},
		"a service with a rank's variables":  {"90 1 systemd\n100 90 dbus-daemon old/1 moved\n101 1 sshd old/1 moved", "", nil},
		"an orphan of a login session":       {"90 1 systemd\n100 90 python old/1", "", []int{100}},
		"no mark":                            {"100 1 python\n101 10 vim", "", nil},
		"the mark that this agent has given": {"100 40 python new/1", "new", nil},
		"an ended one with a child":          {"100 1 sh old/1 zombie\n101 100 sleep old/1", "", []int{101}},
		"ended":                              {"100 1 sh old/1 zombie", "", nil},
		"a gang inside of a dead one": {
			"100 1 sh old/1\n101 100 gangrun old/1\n102 101 gang-watchdog old/1 agent\n103 102 gangrun old/1 agent\n104 103 python inner/1", "", []int{100, 101},
		},
		"what a shell has started with a rank's variables": {"100 10 sleep old/1", "", nil},
		"init is hidden": {"100 1 sh old/1", "", []int{100}},
	} {
		table, look := machine(t, asking+c.processes)
		if name == "init is hidden" {
			delete(table, 1)
		}
		if got := pids(table.Find(40, c.run, look)); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// A job script that was submitted by a rank of an old gang runs gangrun.
func TestFindInMarkedScript(t *testing.T) {
	table, look := machine(t, `
1 0 init
5 1 slurmstepd
10 5 bash old/1
11 10 monitor old/1
20 10 gangrun old/1
30 20 gang-watchdog old/1 agent
31 30 gangrun old/1 agent
40 31 gangrun old/1 agent
50 5 python dead/1
51 1 python dead/1
`)
	if got := pids(table.Find(40, "", look)); !slices.Equal(got, []int{50, 51}) {
		t.Errorf("found %v, want the orphans that init and the batch system's daemon were given", got)
	}
}

// Rank 40 of a gang runs gangrun, of which agent 80 asks.
const nested = `
1 0 init
20 1 gangrun
30 20 gang-watchdog agent
31 30 gangrun agent
32 31 gangrun agent
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
		table, look := machine(t, nested+c.processes)
		if got := pids(table.Find(80, c.run, look)); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

func TestAlive(t *testing.T) {
	const other = "90 1 gang-watchdog agent\n91 90 gangrun agent\n92 91 gangrun agent\n"
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
		table, look := machine(t, asking+c.processes)
		if got := pids(table.Alive(40, "run/2", look)); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}
