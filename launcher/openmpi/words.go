package openmpi

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WordKind is what mpirun said.
type WordKind string

// What mpirun says. The texts are those of Open MPI 4.1's and PRRTE 3's help
// files.
const (
	Improper  WordKind = "improper"   // a rank ended without MPI_Finalize: Rank, PID, Host
	Abort     WordKind = "abort"      // a rank called MPI_Abort: Rank, Code
	Signal    WordKind = "signal"     // a rank was killed: Rank, PID, Host, Code is the signal
	ExitCode  WordKind = "exit-code"  // a rank ended with Code other than 0: Rank
	NoProgram WordKind = "no-program" // a rank's program (the shim) cannot be started: Rank, Host
	Lost      WordKind = "lost"       // the connection to a daemon was lost: Host
	NoDaemon  WordKind = "no-daemon"  // a daemon cannot be started, or does not report
	NoAgent   WordKind = "no-agent"   // the rsh agent cannot be found
	NoSlots   WordKind = "no-slots"   // there are more ranks than slots, or a host is not in the allocation
	Root      WordKind = "root"       // mpirun refuses to run as root
	Unheard   WordKind = "unheard"    // a daemon's message could not be read: words may be missing
)

// Word is something that mpirun said on stderr.
type Word struct {
	Rank int // -1 if it names none
	PID  int // on the rank's host, of the shim; 0 if it names none
	Kind WordKind
	Code int    // 0 if it names none
	Host string // as mpirun names it; "" if it names none
}

// Words finds what mpirun says in what it writes. The zero value is ready. It
// reads whole lines, and keeps those that may be the start of a message and what
// follows them, for a while.
type Words struct {
	line  []byte // not ended yet
	text  []byte // lines that may belong together, blanks squeezed
	lines int    // in text
}

// A longer line loses its rest (in bytes). The longest of the messages, as far
// as they are looked at, has six lines.
const (
	maxLine  = 1024
	maxLines = 8
)

// starts are what the first line of each pattern's text has in it.
var starts = [][]byte{
	[]byte("due to process "), []byte("MPI_ABORT was invoked "), []byte("noticed that process "), []byte("The first process to do so was:"),
	[]byte("unable to launch the specified application "), []byte(" has lost communication "), []byte(" was unable to reliably start "),
	[]byte(" daemon has unexpectedly failed "), []byte("The value of the MCA parameter "), []byte("There are not enough slots "),
	[]byte(" contained a node "), []byte("All nodes which are allocated "), []byte("detected an attempt to run as root"), []byte("_ERROR_LOG: Data unpack "),
}

// patterns are what is looked for in a text of squeezed blanks. A group is
// named after the field that it holds. None needs more than maxLines lines, and
// each has one of starts in its first.
var patterns = []struct {
	kind WordKind
	text *regexp.Regexp
}{
	{Improper, regexp.MustCompile(`due to process rank (?P<rank>\d{1,9}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S+) exiting improperly`)},
	{Improper, regexp.MustCompile(`due to process (?:rank )?\[\S+,(?P<rank>\d{1,9})\] (?:with PID (?P<pid>\d{1,9}) )?on node (?P<host>\S+) exiting improperly`)},
	{Abort, regexp.MustCompile(`MPI_ABORT was invoked on rank (?P<rank>\d{1,9}) in communicator .{1,300}? with errorcode (?P<code>-?\d{1,10})\b`)},
	{Signal, regexp.MustCompile(`noticed that process rank (?P<rank>\d{1,9}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S+) exited on signal (?P<code>\d{1,9})\b`)},
	{ExitCode, regexp.MustCompile(`The first process to do so was: Process name: \[\S+,(?P<rank>\d{1,9})\] Exit code: (?P<code>-?\d{1,10})\b`)},
	{NoProgram, regexp.MustCompile(`unable to launch the specified application as it could not (?:access or execute an executable: Executable: .{1,1000}? Node: (?P<host>\S+) while attempting to start process rank (?P<rank>\d{1,9})|find an executable: )`)},
	{Lost, regexp.MustCompile(`(?:ORTE|PRTE) has lost communication with a remote daemon\. HNP daemon : \S+ on node \S+ Remote daemon: \S+ on node (?P<host>\S+)`)},
	{NoDaemon, regexp.MustCompile(`(?:ORTE|PRTE) was unable to reliably start one or more daemons\.`)},
	{NoDaemon, regexp.MustCompile(`An (?:ORTE|PRTE) daemon has unexpectedly failed after launch`)},
	{NoAgent, regexp.MustCompile(`The value of the MCA parameter "plm_(?:rsh|ssh)_agent" was set to a path that could not be found`)},
	{NoSlots, regexp.MustCompile(`There are not enough slots available in the system`)},
	{NoSlots, regexp.MustCompile(`contained a node \(\S+\) that is not in your allocation`)},
	{NoSlots, regexp.MustCompile(`All nodes which are allocated for this job are already filled`)},
	{Root, regexp.MustCompile(`has detected an attempt to run as root`)},
	{Unheard, regexp.MustCompile(`ORTE_ERROR_LOG: Data unpack would read past end of buffer in file \S*show_help\.c`)},
}

// Feed reads the next piece of what mpirun writes, cut anywhere, and returns
// what was said by the end of each line in it, in order.
func (w *Words) Feed(piece []byte) []Word {
	var words []Word
	for len(piece) > 0 {
		line, rest, ended := bytes.Cut(piece, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), maxLine-len(w.line))]...)
		if piece = rest; ended {
			words = append(words, w.end()...)
		}
	}
	return words
}

// Close says what was said in a last line without an end. Words can be fed
// again after it.
func (w *Words) Close() []Word {
	words := w.end()
	w.text = w.text[:0]
	return words
}

// end takes the line in hand to the text, and reads the text.
func (w *Words) end() []Word {
	fields := bytes.Fields(w.line)
	w.line = w.line[:0]
	if len(fields) == 1 && len(fields[0]) >= 20 && len(bytes.Trim(fields[0], "-")) == 0 {
		w.text = w.text[:0] // the rule between two messages
		return nil
	}
	if len(fields) == 0 {
		return nil
	}
	line := bytes.Join(fields, []byte(" "))
	if slices.ContainsFunc(starts, func(start []byte) bool { return bytes.Contains(line, start) }) {
		w.lines = 0
	} else if w.lines++; w.lines > maxLines {
		w.text = w.text[:0]
	}
	if w.lines > 0 && len(w.text) == 0 {
		return nil
	}
	if len(w.text) > 0 {
		w.text = append(w.text, ' ')
	}
	w.text = append(w.text, line...)
	if over := len(w.text) - maxLine*maxLines; over > 0 {
		w.text = append(w.text[:0], w.text[over:]...)
	}
	var words []Word
	for {
		word, end := first(w.text)
		if end == 0 {
			return words
		}
		words = append(words, word)
		w.text = append(w.text[:0], w.text[end:]...)
	}
}

// first returns the first word of text and where it ends there; 0 if there is
// none.
func first(text []byte) (word Word, end int) {
	start := math.MaxInt
	for _, pattern := range patterns {
		at := pattern.text.FindSubmatchIndex(text)
		if at == nil || at[0] >= start {
			continue
		}
		found := Word{Rank: -1, Kind: pattern.kind}
		for i, name := range pattern.text.SubexpNames() {
			if name == "" || at[2*i] < 0 {
				continue
			}
			value := string(text[at[2*i]:at[2*i+1]])
			if name == "host" {
				found.Host = strings.TrimRight(value, ".,")
				continue
			}
			number, _ := strconv.Atoi(value) // the patterns allow ten digits
			switch name {
			case "rank":
				found.Rank = number
			case "pid":
				found.PID = number
			case "code":
				found.Code = number
			}
		}
		word, start, end = found, at[0], at[1]
	}
	return word, end
}
