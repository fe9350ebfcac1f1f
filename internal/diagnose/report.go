package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// report is what a launcher or a shell prints about the end of a process.
type report struct {
	rank   int // -1 when it names none
	host   string
	pid    int
	signal int // 0 when it ended with a code
	code   int
	core   bool
}

var (
	ompiSignal  = textmatch.New(`process rank (\d+) with PID (\d+) on node ([\w.-]+) exited on *(?:signal (\d+))?`)
	ompiName    = textmatch.New(`Process name: \[\S+,(\d+)\](?: *Exit code: +(\d+))?`)
	exitCode    = textmatch.New(`(?:Exit code|EXIT CODE): +(\d+)`)
	hydraWho    = textmatch.New(`=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT ([\w.-]+)`)
	hydraSignal = textmatch.New(`(?:KILLED BY SIGNAL: (\d+)|EXIT STRING: .*\(signal (\d+)\))`)
	mpdStatus   = textmatch.New(`exit status of rank (\d+): (?:killed by signal (\d+)|return code (\d+))`)
	torchHost   = textmatch.New(`^\s*host +: ([\w.-]+)`)
	torchRank   = textmatch.New(`^\s*rank +: (\d+)`)
	torchExit   = textmatch.New(`^\s*exitcode +: (-?\d+) +\(pid: (\d+)\)`)
	torchFailed = textmatch.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)`)
	srunTask    = textmatch.New(`srun: error: ([\w.-]+): tasks? (\d+)[\d,-]*: (Exited with exit code (\d+)|.*)`)
	shellLine   = textmatch.New(`: line \d+: +(\d+) (Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception|Hangup|CPU time limit exceeded|File size limit exceeded)( +\(core dumped\))?`)
)

var words = map[string]int{"Hangup": 1, "Illegal instruction": 4, "Trace/breakpoint trap": 5, "Aborted": 6, "Bus error": 7, "Floating point exception": 8, "Killed": 9,
	"Segmentation fault": 11, "Terminated": 15, "CPU time limit exceeded": 24, "File size limit exceeded": 25}

// parsers are found by the texts that their reports hold.
var parsers = []struct {
	needle string
	parse  func(text []string, i int) (report, int, bool)
}{
	{"process rank ", ompi},
	{"process name: [", ompiExit},
	{"bad termination of one", hydra},
	{"exit status of rank ", mpd},
	{"exitcode  ", torchTable},
	{"failed (exitcode: ", torchLine},
	{"srun: error: ", srun},
	{": line ", shell},
	{"killed", alone}, {"terminated", alone}, {"aborted", alone}, {"segmentation fault", alone}, {"bus error", alone}, {"illegal instruction", alone}, {"floating point exception", alone},
}

var reporters = func() *textmatch.Index {
	x := &textmatch.Index{}
	for i, p := range parsers {
		x.Add(p.needle, i)
	}
	return x
}()

// reports finds what launchers and shells print about the end of processes.
func reports(text []string, covered []bool) []*sign {
	var signs []*sign
	var found []int
	root := false
	for i, t := range text {
		if covered[i] || len(t) < 4 {
			root = root || strings.HasPrefix(t, "Root Cause (first observed failure)")
			continue
		}
		root = root || strings.HasPrefix(t, "Root Cause (first observed failure)")
		found = reporters.Find(t, found[:0])
		slices.Sort(found)
		for _, p := range found {
			r, at, ok := parsers[p].parse(text, i)
			if !ok {
				continue
			}
			g := &sign{text: t, title: t, from: i, at: at, to: at + 1, report: &r, discount: 0.1}
			if g.rule = rules.OfEnd(r.signal, r.code); g.rule == nil {
				break
			}
			if root && strings.Contains(t, "exitcode") {
				g.discount = 0 // torchrun's own choice of the first failure
			}
			signs = append(signs, g)
			break
		}
	}
	return signs
}

func ompi(text []string, i int) (report, int, bool) {
	m := ompiSignal.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	r := report{rank: logtext.Number(m[1]), pid: logtext.Number(m[2]), host: m[3], signal: logtext.Number(m[4])}
	if r.signal == 0 && i+1 < len(text) { // wrapped
		if n, ok := strings.CutPrefix(text[i+1], "signal "); ok {
			n, _, _ = strings.Cut(n, " ")
			r.signal = logtext.Number(n)
			i++
		}
	}
	return r, i, r.signal > 0
}

func ompiExit(text []string, i int) (report, int, bool) {
	m := ompiName.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	code, at := m[2], i
	if code == "" && i+1 < len(text) {
		if n := exitCode.FindStringSubmatch(text[i+1]); n != nil {
			code, at = n[1], i+1
		}
	}
	return report{rank: logtext.Number(m[1]), code: logtext.Number(code)}, at, logtext.Number(code) > 0
}

func hydra(text []string, i int) (report, int, bool) {
	r, at := report{rank: -1}, i
	for j := i + 1; j < len(text) && j <= i+9; j++ {
		t := text[j]
		if strings.Contains(t, "BAD TERMINATION") {
			break
		}
		if m := hydraWho.FindStringSubmatch(t); m != nil {
			r.pid, r.host, at = logtext.Number(m[2]), m[3], j
			if m[1] != "" {
				r.rank = logtext.Number(m[1])
			}
		}
		if m := exitCode.FindStringSubmatch(t); m != nil && r.signal == 0 {
			r.code, at = logtext.Number(m[1]), j
		}
		if m := hydraSignal.FindStringSubmatch(t); m != nil {
			r.signal, r.code, at = logtext.Number(m[1]+m[2]), 0, j
		}
	}
	return r, at, r.signal > 0 || r.code > 0
}

func mpd(text []string, i int) (report, int, bool) {
	m := mpdStatus.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	r := report{rank: logtext.Number(m[1]), signal: logtext.Number(m[2]), code: logtext.Number(m[3])}
	return r, i, r.signal > 0 || r.code > 0
}

func torchTable(text []string, i int) (report, int, bool) {
	m := torchExit.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	r := ended(m[1])
	r.pid = logtext.Number(m[2])
	for j := i - 1; j >= 0 && j >= i-4; j-- {
		if n := torchRank.FindStringSubmatch(text[j]); n != nil {
			r.rank = logtext.Number(n[1])
		}
		if n := torchHost.FindStringSubmatch(text[j]); n != nil {
			r.host = n[1]
		}
	}
	return r, i, r.signal > 0 || r.code > 0
}

func torchLine(text []string, i int) (report, int, bool) {
	m := torchFailed.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	r := ended(m[1])
	r.pid = logtext.Number(m[3])
	return r, i, r.signal > 0 || r.code > 0
}

// ended reads an exit code of Python's subprocess: a signal is negative.
func ended(code string) report {
	n := logtext.Number(code)
	if n < 0 {
		return report{rank: -1, signal: -n}
	}
	return report{rank: -1, code: n}
}

func srun(text []string, i int) (report, int, bool) {
	m := srunTask.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	what, _, core := strings.Cut(m[3], " (core dumped)")
	r := report{rank: logtext.Number(m[2]), host: m[1], code: logtext.Number(m[4]), signal: words[what], core: core}
	return r, i, r.signal > 0 || r.code > 0
}

func shell(text []string, i int) (report, int, bool) {
	m := shellLine.FindStringSubmatch(text[i])
	if m == nil {
		return report{}, 0, false
	}
	return report{rank: -1, pid: logtext.Number(m[1]), signal: words[m[2]], core: m[3] != ""}, i, true
}

// alone reads a line that is only a shell's word for the end of its child, such as "Killed".
func alone(text []string, i int) (report, int, bool) {
	what, _, core := strings.Cut(text[i], " (core dumped)")
	signal := words[what]
	return report{rank: -1, signal: signal, core: core}, i, signal > 0
}
