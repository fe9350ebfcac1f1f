// Package endreport reads what launchers, batch systems and shells print about the end of processes.
package endreport

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Report is what a launcher or a shell prints about the end of a process.
type Report struct {
	Rank   int // -1 if the report names no rank
	Host   string
	PID    int
	Signal int // 0 if the process ended with a code
	Code   int
	Core   bool
}

var (
	ompiSignal  = textmatch.New(`process rank (\d+) with PID (\d+) on node ([\w.-]+) exited on *(?:signal (\d+))?`)
	ompiName    = textmatch.New(`Process name: \[\S+,(\d+)\](?: *Exit code: +(\d+))?`)
	exitCode    = textmatch.New(`(?:Exit code|EXIT CODE|EXIT STATUS): +(\d+)`)
	hydraWho    = textmatch.New(`=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT ([\w.-]+)`)
	hydraSignal = textmatch.New(`(?:KILLED BY SIGNAL: (\d+)|EXIT STRING: .*\(signal (\d+)\))`)
	mpdStatus   = textmatch.New(`exit status of rank (\d+): (?:killed by signal (\d+)|return code (\d+))`)
	torchHost   = textmatch.New(`^\s*host +: ([\w.-]+)`)
	torchRank   = textmatch.New(`^\s*rank +: (\d+)`)
	torchExit   = textmatch.New(`^\s*exitcode +: (-?\d+) +\(pid: (\d+)\)`)
	torchFailed = textmatch.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)`)
	torchBox    = textmatch.New(`Child process (\d+) \(local_rank (\d+)\) FAILED \(exitcode (-?\d+)\)`)
	srunTask    = textmatch.New(`srun: error: ([\w.-]+): tasks? (\d+)[\d,-]*: (Exited with exit code (\d+)|.*)`)
	rankCode    = textmatch.New(`(?i)\b(?:global )?(?:rank|task|PE RANK|PE|locale|image|part|child|member|replica|worker|rk|[rwmp])[ :#]*(?:\[)?(\d{1,6})\]?(?: \((?:PID |pid )?(\d+)\)| \([^()]{1,40}\))?[, :](?:on (?:node |host )?[\w.-]+ )?(?:has |was |is )?(?:ended|exited|finished|died|failed|terminated|crashed|exit|killed|stopped|left|gone|lost|dead)(?: before MPI_Finalize\(\))?(?:[:,] (?:it )?(?:was )?(?:killed|terminated|ended|died|stopped))?(?: (?:with|from|by|on|of)|:| \() ?(?:exit )?(?:status |code |signal |status[:=]+ ?|code[:=]+ ?)?(-?\d{1,3})\b`)
	gasnetProc  = textmatch.New(`Caught a fatal signal(?: \(proc (\d+)\))?: \w+\((\d+)\)(?: on node (\d+)/\d)?`)
	deepspeed   = textmatch.New(`-{2}local[_-]rank[=', ]+(\d+).*exits with return code = (-?\d+)`)
	shellLine   = textmatch.New(`: line \d+: +(\d+) (Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception|Hangup|CPU time limit exceeded|File size limit exceeded)( +\(core dumped\))?`)
)

var words = map[string]int{"Hangup": 1, "Illegal instruction": 4, "Trace/breakpoint trap": 5, "Aborted": 6, "Bus error": 7, "Floating point exception": 8, "Killed": 9,
	"Segmentation fault": 11, "Terminated": 15, "CPU time limit exceeded": 24, "File size limit exceeded": 25}

// parsers has the functions that read reports. A function is tried on lines that contain its needle.
var parsers = []struct {
	needle string
	parse  func(text []string, i int) (Report, int, bool)
}{
	{"process rank ", ompi},
	{"process name: [", ompiExit},
	{"bad termination of one", hydra},
	{"exit status of rank ", mpd},
	{"exitcode  ", torchTable},
	{"failed (exitcode: ", torchLine},
	{" failed (exitcode ", torchOld},
	{"srun: error: ", srun},
	{"caught a fatal signal", gasnet},
	{": line ", shell},
	{"exits with return code = ", deepSpeed},
	{" with exit code ", ofRank}, {" with status ", ofRank}, {" with code ", ofRank}, {" with signal ", ofRank}, {" with exit status ", ofRank}, {" by signal ", ofRank}, {" on signal ", ofRank}, {": signal ", ofRank}, {" (signal ", ofRank}, {" of signal ", ofRank}, {" exited with ", ofRank},
	{"exit code", coded}, {"exit status", coded},
	{"received signal ", byNumber}, {"got signal ", byNumber}, {"caught signal ", byNumber},
	{"segmentation fault", bySignal}, {"bus error", bySignal}, {" sigkill", bySignal}, {" sigsegv", bySignal}, {" sigbus", bySignal}, {" sigabrt", bySignal}, {" sigfpe", bySignal}, {" sigill", bySignal},
	{"killed", alone}, {"terminated", alone}, {"aborted", alone}, {"segmentation fault", alone}, {"bus error", alone}, {"illegal instruction", alone}, {"floating point exception", alone},
}

var reporters = func() *textmatch.Index {
	x := &textmatch.Index{}
	for i, p := range parsers {
		x.Add(p.needle, i)
	}
	return x
}()

func ompi(text []string, i int) (Report, int, bool) {
	m := ompiSignal.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := Report{Rank: logtext.Number(m[1]), PID: logtext.Number(m[2]), Host: m[3], Signal: logtext.Number(m[4])}
	if r.Signal == 0 && i+1 < len(text) { // the report is wrapped onto the next line
		if n, ok := strings.CutPrefix(text[i+1], "signal "); ok {
			n, _, _ = strings.Cut(n, " ")
			r.Signal = logtext.Number(n)
			i++
		}
	}
	return r, i, r.Signal > 0
}

func ompiExit(text []string, i int) (Report, int, bool) {
	m := ompiName.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	code, at := m[2], i
	if code == "" && i+1 < len(text) {
		if n := exitCode.FindStringSubmatch(text[i+1]); n != nil {
			code, at = n[1], i+1
		}
	}
	return Report{Rank: logtext.Number(m[1]), Code: logtext.Number(code)}, at, logtext.Number(code) > 0
}

// crashes has the signals of crashes. If such a signal has ended a process, hydra prints its number as the exit code.
var crashes = []int{4, 6, 7, 8, 11}

// ends reports whether a signal is SIGKILL or that of a crash.
func ends(signal int) bool { return signal == 9 || slices.Contains(crashes, signal) }

func hydra(text []string, i int) (Report, int, bool) {
	r, at := Report{Rank: -1}, i
	for j := i + 1; j < len(text) && j <= i+9; j++ {
		t := text[j]
		if strings.Contains(t, "BAD TERMINATION") {
			break
		}
		if m := hydraWho.FindStringSubmatch(t); m != nil {
			r.PID, r.Host, at = logtext.Number(m[2]), m[3], j
			if m[1] != "" {
				r.Rank = logtext.Number(m[1])
			}
		}
		if m := exitCode.FindStringSubmatch(t); m != nil && r.Signal == 0 {
			r.Code, at = logtext.Number(m[1]), j
		}
		if m := hydraSignal.FindStringSubmatch(t); m != nil {
			r.Signal, at = logtext.Number(m[1]+m[2]), j
		}
	}
	switch {
	case slices.Contains(crashes, r.Code) && r.Signal > 0:
		// The code is the signal of the first process that ended. hydra itself sent the other signal to the rest.
		r.Signal = r.Code
	case r.Signal == 0 && (r.Code == 9 || r.Code == 11): // an old hydra does not name the signal
		r.Signal = r.Code
	case r.Signal == 0 && r.Code > shellSignal && ends(r.Code-shellSignal):
		r.Signal = r.Code - shellSignal
	}
	if r.Signal > 0 {
		r.Code = 0
	}
	return r, at, r.Signal > 0 || r.Code > 0
}

func mpd(text []string, i int) (Report, int, bool) {
	m := mpdStatus.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := Report{Rank: logtext.Number(m[1]), Signal: logtext.Number(m[2]), Code: logtext.Number(m[3])}
	return r, i, r.Signal > 0 || r.Code > 0
}

func torchTable(text []string, i int) (Report, int, bool) {
	m := torchExit.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := ended(m[1])
	r.PID = logtext.Number(m[2])
	for j := i - 1; j >= 0 && j >= i-4; j-- {
		if n := torchRank.FindStringSubmatch(text[j]); n != nil {
			r.Rank = logtext.Number(n[1])
		}
		if n := torchHost.FindStringSubmatch(text[j]); n != nil {
			r.Host = n[1]
		}
	}
	return r, i, r.Signal > 0 || r.Code > 0
}

func torchLine(text []string, i int) (Report, int, bool) {
	m := torchFailed.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := ended(m[1])
	r.PID = logtext.Number(m[3])
	return r, i, r.Signal > 0 || r.Code > 0
}

// torchOld reads the report of the launcher of PyTorch 1.8 and older.
func torchOld(text []string, i int) (Report, int, bool) {
	m := torchBox.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := ended(m[3])
	r.PID = logtext.Number(m[1])
	return r, i, r.Signal > 0 || r.Code > 0
}

// ended reads an exit code as Python's subprocess gives it: a negative number stands for a signal.
func ended(code string) Report {
	n := logtext.Number(code)
	if n < 0 {
		return Report{Rank: -1, Signal: -n}
	}
	return Report{Rank: -1, Code: n}
}

func srun(text []string, i int) (Report, int, bool) {
	m := srunTask.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	what, _, core := strings.Cut(m[3], " (core dumped)")
	r := Report{Rank: logtext.Number(m[2]), Host: m[1], Code: logtext.Number(m[4]), Signal: words[what], Core: core}
	return r, i, r.Signal > 0 || r.Code > 0
}

// ofRank reads a report that a program or a script itself prints about the end of a rank.
func ofRank(text []string, i int) (Report, int, bool) {
	m := rankCode.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := ended(m[3])
	if strings.Contains(strings.ToLower(text[i]), "signal ") {
		r.Signal, r.Code = r.Code, 0
	} else if r.Code > 128 && r.Code < 160 {
		r.Signal, r.Code = r.Code-128, 0
	}
	r.Rank, r.PID = logtext.Number(m[1]), logtext.Number(m[2])
	return r, i, (r.Signal > 0 || r.Code > 0) && !processNumber.MatchString(text[i])
}

// signalName matches a line in which a program that starts ranks names the signal that a rank got.
var signalName = textmatch.New(`(?i)\b(?:rank|task|PE|locale|image|worker|member|replica|child|process) ?[ :#=]?(\d{1,5})(?: \([^()]{1,40}\)| on [\w.-]+)?:? (?:has |was |is )?(?:\w+ )?(?:got|received|caught|killed|died|ended|exited|terminated|hit|gone)(?: (?:by|with|of|on|from))?:? (?:a |signal )?(SIG(?:KILL|SEGV|BUS|ABRT|FPE|ILL)|Segmentation fault|Bus error)\b`)

// signals are the numbers of the signals that a report may name.
var signals = map[string]int{"SIGKILL": 9, "SIGSEGV": 11, "SIGBUS": 7, "SIGABRT": 6, "SIGFPE": 8, "SIGILL": 4, "SEGMENTATION FAULT": 11, "BUS ERROR": 7}

// processNumber matches a word that may stand for a rank, followed by a number so long that it is a PID.
var processNumber = textmatch.New(`(?i)\b(?:worker|member|replica|child|process) ?[ :#=]?\d{4}`)

// bySignal reads a report that names a signal, such as "rank 2 got SIGKILL".
func bySignal(text []string, i int) (Report, int, bool) {
	m := signalName.FindStringSubmatch(text[i])
	if m == nil || processNumber.MatchString(text[i]) {
		return Report{}, 0, false
	}
	return Report{Rank: logtext.Number(m[1]), Signal: signals[strings.ToUpper(m[2])]}, i, true
}

var (
	// signalNumber matches a line with the number of the signal that ended a rank. The line itself or a line just above
	// it names the rank.
	signalNumber = textmatch.New(`(?i)^\s*(?:[\w.-]+: )*(?:\W*error\W+)?(?:(?:rank|task|PE|process) (\d{1,5}) (?:has |was )?)?(?:received|got|caught) signal (\d{1,2})\b[^\d:(]*$`)
	leftEarly    = textmatch.New(`\brank (\d+) has terminated without calling MPI_Finalize`)
)

// namedAbove is how many lines above such a line may name the rank.
const namedAbove = 3

// byNumber reads a line that signalNumber matches.
func byNumber(text []string, i int) (Report, int, bool) {
	m := signalNumber.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := Report{Rank: -1, Signal: logtext.Number(m[2])}
	for _, t := range text[max(0, i-namedAbove):i] {
		if n := leftEarly.FindStringSubmatch(t); n != nil && m[1] == "" {
			m[1] = n[1]
		}
	}
	if m[1] != "" {
		r.Rank = logtext.Number(m[1])
	}
	return r, i, ends(r.Signal)
}

func gasnet(text []string, i int) (Report, int, bool) {
	m := gasnetProc.FindStringSubmatch(text[i])
	if m == nil || m[1]+m[3] == "" {
		return Report{}, 0, false
	}
	return Report{Rank: logtext.Number(m[1] + m[3]), Signal: logtext.Number(m[2])}, i, true
}

func deepSpeed(text []string, i int) (Report, int, bool) {
	m := deepspeed.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	r := ended(m[2]) // DeepSpeed always prints the command line of the last rank, whichever rank failed
	return r, i, r.Signal > 0 || r.Code > 0
}

func shell(text []string, i int) (Report, int, bool) {
	m := shellLine.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	return Report{Rank: -1, PID: logtext.Number(m[1]), Signal: words[m[2]], Core: m[3] != ""}, i, true
}

// alone reads a line that consists of a shell's word for the end of its child, such as "Killed".
func alone(text []string, i int) (Report, int, bool) {
	what, _, core := strings.Cut(text[i], " (core dumped)")
	signal := words[what]
	return Report{Rank: -1, Signal: signal, Core: core}, i, signal > 0
}

// signalCode matches a line of a script, a shell or Kubernetes with an exit code that stands for a signal.
var signalCode = textmatch.New(`(?i)^\W*(?:[\w./-]+[\]:]{0,2} ){0,5}?exit(?:ed)?(?: with)? (?:code|status):? *(?:is |was )?\(?(1[34]\d)\)?[.,]?\s*(?:\(.*|reason.*)?$`)

// coded reads a line that signalCode matches, if the signal is SIGKILL or SIGTERM.
func coded(text []string, i int) (Report, int, bool) {
	m := signalCode.FindStringSubmatch(text[i])
	if m == nil {
		return Report{}, 0, false
	}
	n := logtext.Number(m[1]) - shellSignal
	return Report{Rank: -1, Signal: n}, i, n == 9 || n == 15
}

// shellSignal is what a shell adds to the number of a signal to form an exit code.
const shellSignal = 128

// Found is a report in a text.
type Found struct {
	Report
	From, At int // the line at which the report begins, and the line that says how the process ended
	// First is true if torchrun reports this as the first failure.
	First bool
}

// Find returns the reports in text, in order. It skips line i if covered[i] is true, because that line belongs to
// another sign of failure. A report may have several lines. The line in which such a report says how the process
// ended is no report of its own.
func Find(text []string, covered []bool) []Found {
	var all []Found
	var found []int
	root, last := false, -1
	for i, t := range text {
		root = root || strings.HasPrefix(t, "Root Cause (first observed failure)")
		if covered[i] || len(t) < 4 || i == last {
			continue
		}
		found = reporters.Find(t, found[:0])
		slices.Sort(found)
		for _, p := range found {
			if r, at, ok := parsers[p].parse(text, i); ok {
				last = at
				all = append(all, Found{Report: r, From: i, At: at, First: root && strings.Contains(t, "exitcode")})
				break
			}
		}
	}
	return all
}

// Needles returns texts for a quick search: every report contains at least one of them.
func Needles() (all []string) {
	for _, p := range parsers {
		all = append(all, p.needle)
	}
	return all
}
