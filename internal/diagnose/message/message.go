// Package message finds the error messages that programs themselves print. It distinguishes them from messages
// of launchers, and from lines that programs print while they go on with their work.
package message

import (
	"slices"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Limits on the search for a message, in lines.
const (
	Reach        = 200 // how far before the end of a text Own looks for a message
	messageLines = 14  // of one message
	frameAbove   = 8   // from a line that announces an error up to the separator above it
)

// announceBytes is how much of the beginning of a line is searched for an announcement.
const announceBytes = 400

var (
	// errorWord matches the word that announces an error.
	errorWord = textmatch.New(`(?i)\b(?:fatal (?:\w+ )?error|error|fatal|abort|critical|(?-i:PANIC))\b`)
	// beforeWord matches what may stand before that word: tags, times, the name of the program.
	beforeWord = textmatch.New(`^(?:[^\pL]*|.*[\]:|>/-]\s*|\W*(?:[\w.:,'/+()#\[\]>-]+\s+){1,4}|\[[\w :.-]*\]\w* )$`)
	// tagsOnly matches what may stand before the word if only its capitals show that it is an announcement.
	tagsOnly = textmatch.New(`^(?:[^\pL]*|.*[\]:|>]\s*)$`)
	// afterWord matches punctuation, a code or a place after the word. It shows that the line is an announcement.
	afterWord = textmatch.New(`(?i)^(?:\s+error)?\s*(?:\[[^\]]*\]|\([^)]*\)|#?\d+|[A-Z]{1,4}-?\d+|(?-i:[A-Z][A-Z0-9_]{2,15}))?\s*(?:[:!](?:$|[^=])|,\s|\s[-=]+>?\s)`)
	// placed matches what may follow the word at the beginning of a line, such as a place in a file.
	placed = textmatch.New(`(?i)^(?:\s+error)?\s+(?:in|on|from|at|while|when|during|reading|writing|opening|parsing|processing|loading|line|number|termination|occurred|message|encountered|detected)\b`)
	// announced matches announcements of other forms.
	announced = textmatch.New(`\pL\S* \S*\pL\S*(?:[,;:.-]| -) ?(?:aborting|giving up|bailing out|cannot continue)(?: now)?[.!]*$|^\W*(?:ERROR )?STOP:?\s+\S*\pL|\[ABORT\]|^\s*from \S+ *: error # *\d+|had an illegal value|^\W*ABORT(?:ING|ED)?\s*[:,-]\s*\pL|` +
		`(?i:there (?:is|was|has been|were) an? (?:\w+ )?error\b|^\W*an? (?:\w+ ){0,2}error (?:has |was )?(?:occurred|detected|encountered))`)
	// measured matches the value of a quantity whose name ends with the word.
	measured = textmatch.New(`(?i)^s?\s*(?:\([^)]*\))?\s*(?:[:=]|is|was|of)?\s*[-+]?(?:\d*\.\d|\d+(?:\.\d*)?(?:e[-+]?\d+)?\s*(?:%|$|[,;|)\]]|\s\w+\s*[:=])|(?:nan|inf)\b\s*(?:$|[,;|)\]]))`)
	// harmlessWords matches words of lines that do not announce the end of the program.
	harmlessWords = textmatch.New(`(?i)^==\d+== |^\s*#\d+ +\S|^(?:wandb|comet|swanlab|neptune|clearml):? (?:error|warning)\b|\berror summary\b|\babort on error\b|^error in cpuinfo: |\bwill be (?:retried|synced|uploaded|sent) later\b|\bthey will be synced|not a git repository|systemexit was raised from the worker|unsafe repository|\b(?:warning|retry\w*|retries|ignor\w+|recover\w*|continuing|skipp\w+|non-?fatal|not fatal|harmless|falling back|trying again|try again|(?:no|0|zero|without)\s+(?:\w+\s+)?(?:fatals?|errors?|aborts?)|` +
		`(?:any|relative|absolute|rel|abs|mean|squared?|rms|rmse|max|maximum|min|average|total|train\w*|test|valid\w*|standard|std|estimated?|round-?off|truncation|residual|prediction|approximation|reconstruction|numerical|l2|linf|final|current) (?:\w+ )?errors?|` +
		`errors? (?:estimat\w+|rate|bars?|norm|tolerance|margin|analysis|correct\w+|handl\w+|check\w*|threshold|budget|bounds?|function|metric|level|log|files?|limit|count|recovery))\b`)
	// endWords matches a message that says only that the program ends.
	endWords = textmatch.New(`(?i)^\W*(?:(?:\w+ )?(?:error|fatal)\W+)*(?:(?:program|run|job|now|code|is|was|the|a|an|due|to|of|because|previous|above|with|after|on|an?|error|errors|fatal|execution|abort\w*|exit\w*|terminat\w*|stop\w*|halt\w*|quit\w*|bye|message|goodbye|\d+)\W*)+$`)
	// Aside matches a line that belongs to an error message, but does not say what went wrong.
	Aside = textmatch.New(`(?i)^\W*(?:last command\b|calls?:|current input line|stopping\b|for more information|for further details|see (?:the |also )?(?:http|manual)|please (?:check|see|consult)|website at)`)
	// lastCommand matches the only line matched by Aside that becomes part of the message.
	lastCommand = textmatch.New(`^Last command: [^(]`)
	// unfinishedLine matches a line whose message is on the lines after it.
	unfinishedLine = textmatch.New(`:(?:\s*\([^)]*\))?$`)
	// heading matches a line with the title of a box.
	heading = textmatch.New(`^\s*[-=*#!]{4,} *\pL[^:]{2,40}[^:\s] *[-=*#!]{4,}\s*$`)
	// Teardown matches what launchers, MPI and others print about the end of other processes.
	Teardown = textmatch.New(`^(?:MPI_ABORT was |Error msg: (?:Process failed with exitcode|Signal \d+ \()|\s*with errorcode|\s*Errorcode|NOTE: invoking MPI_ABORT|You may or may not see|exactly when Open MPI|error message you will receive is|Primary job|a non-zero exit|` +
		`(?:mpirun|mpiexec|prterun|orterun|srun|slurmstepd\S*|gangrun|make|ninja)(?:\[\d+\])?[: ]|(?:ERROR|WARNING|INFO):torch\.distributed|\[[\d :,-]+\] \[(?:ERROR|INFO)\] \[launch\.py|[EWI]\d{4} .*(?:torch/distributed|elastic)|\[(?:proxy|mpiexec)|=   |Abort\(-?\d+\)|[Aa]pplication called MPI_Abort|YOUR APPLICATION|` +
		`frame #|\s*(?:-?\d+:)?MPT(?: ERROR)?: |INTERNAL ERROR: Invalid error class|Execution halted|Error termination\. Backtrace|Traceback )|ORTE_ERROR_LOG|PM[Ii]X ERROR|UCX +(?:ERROR|WARN)|NCCL (?:WARN|INFO)|\*\*\* (?:An error occurred in MPI|reported by process|on (?:a |comm)|MPI_ERR|and MPI will|and potentially)`)
	// Advance matches a line of a program that goes on with its work.
	Advance = textmatch.New(`(?i)\b(?:step|epoch|iter|iteration|batch|cycle|it)s?\b(?: number\b)?[ :=#(\[]*\d+|\d+%\||` + Numbers.String())
	// Numbers matches a row of a table of numbers.
	Numbers = textmatch.New(`^\s*\d+(?:\s+[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?){2,}\s*$`)
)

// decoration has the characters of which the boxes around messages are made.
const decoration = "*#%!|\\/_=~ \t"

// announcers returns an index of words. Every announcement has one of them, except for records of glog.
var announcers = sync.OnceValue(func() *textmatch.Index {
	x := &textmatch.Index{}
	for i, word := range []string{"error", "fatal", "abort", "critical", "panic", "stop ", "illegal value", "giving up", "bailing out", "cannot continue"} {
		x.Add(word, i)
	}
	return x
})

// Announces reports whether a line announces an error of the program itself, as in "ERROR: no such file".
func Announces(t string) bool {
	whole := t
	t = t[:min(len(t), announceBytes)]
	if len(announcers().Find(t, nil)) == 0 && !(strings.HasPrefix(t, "F") && glog.MatchString(t)) {
		return false
	}
	if Teardown.MatchString(t) || FortranStop.MatchString(t) || harmlessWords.MatchString(t) {
		return false
	}
	switch level, _ := Record(whole); level {
	case Error, Fatal:
		return true
	case Info, Warning:
		return false
	}
	if announced.MatchString(t) {
		return true
	}
	at := errorWord.FindStringIndex(t)
	if at == nil || at[0] > 60 {
		return false
	}
	before, word, after := t[:at[0]], t[at[0]:at[1]], t[at[1]:]
	switch {
	case measured.MatchString(after):
		return false
	case beforeWord.MatchString(before) && afterWord.MatchString(after):
		return true
	case beforeWord.MatchString(before) && placed.MatchString(after):
		return true
	}
	return tagsOnly.MatchString(before) && strings.ToUpper(word) == word && strings.TrimSpace(after) != ""
}

// Message is an error message that a program itself has printed.
type Message struct {
	Text  string // the message in one line
	Title string // the message in the form that is shown to people
	Calls string // the line of R that lists the calls through which the error passed, or empty
	From  int    // the index of its first line
	At    int    // the index of the line that says most about the error
	To    int    // the index of its last line, plus 1
}

// Own returns the last error message of the program itself near the end of text, or nil if there is none. If
// taken[i] is true, line i belongs to another sign of failure, and Own does not use it.
func Own(text []string, taken []bool) *Message {
	first := max(0, len(text)-Reach)
	announced := func(i int) bool { return i >= first && !taken[i] && Announces(text[i]) }
	for i := len(text) - 1; i >= first; i-- {
		if !announced(i) {
			continue
		}
		// Of messages that follow one another, the first says most.
		for lead := leadOf(text[i]); announced(i-1) || i-1 >= first && text[i-1] == "" && announced(i-2) || leads(lead, text[first:i]); {
			i--
		}
		if g := Read(text, i, endOfMessage(text, taken, i)); g != nil {
			return g
		}
	}
	return nil
}

// leads reports whether one of the last two lines of before begins with lead, as the error message that follows them
// does.
func leads(lead string, before []string) bool {
	n := len(before)
	return lead != "" && (n > 0 && strings.HasPrefix(before[n-1], lead) || n > 1 && strings.HasPrefix(before[n-2], lead))
}

// numberTag matches the number of a rank before a line.
var numberTag = textmatch.New(`^\[\d+\] `)

// At returns the message that line i announces, or nil. text is the output of several ranks. If the line does not
// say which error it is, At takes the error from the next line with the same rank number.
func At(text []string, i int) *Message {
	tag := ""
	if at := numberTag.FindStringIndex(text[i]); at != nil {
		tag = text[i][:at[1]]
	}
	if !unfinished(text[i]) {
		return Read(text, i, i+1)
	}
	for j := i + 1; j < len(text) && j <= i+adjacent; j++ {
		rest, ok := strings.CutPrefix(text[j], tag)
		if ok && plainWords(rest) != "" && (tag != "" || !numberTag.MatchString(text[j])) {
			if g := Read([]string{text[i], rest}, 0, 2); g != nil {
				g.From, g.At, g.To = i, j, j+1
				return g
			}
			break
		}
	}
	return Read(text, i, i+1)
}

// adjacent is how many lines after an announcement the message of the same rank may be.
const adjacent = 6

// endOfMessage returns the index of the line after the message that begins at line from.
func endOfMessage(text []string, taken []bool, from int) int {
	framed := inFrame(text, from)
	open := unfinished(text[from])
	to := from + 1
	for i := from + 1; i < len(text) && i < from+messageLines; i++ {
		t := text[i]
		next := ""
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case taken[i] || Teardown.MatchString(t) || Numbers.MatchString(t):
			return to
		case strings.TrimSpace(t) == "":
			if !open && !Announces(next) {
				return to
			}
			continue
		case Separator(t):
			if !open {
				return to
			}
			continue
		case !framed && !open && !Announces(t) && !Aside.MatchString(t) && !Aside.MatchString(next) && !deeper(text[from], t):
			return to
		}
		open = open && plainWords(t) == ""
		to = i + 1
	}
	return to
}

// unfinished reports whether a line announces an error without saying which error it is.
func unfinished(t string) bool {
	words := plainWords(t)
	return words == "" || unfinishedLine.MatchString(words) || heading.MatchString(t)
}

// Read returns the message in text[from:to]. It returns nil if these lines say only that the program
// ends.
func Read(text []string, from, to int) *Message {
	g := &Message{From: from, At: from, To: to}
	lead, command := leadOf(text[from]), ""
	framed, open := inFrame(text, from), true // open: the sentence goes on on the next line
	for i, t := range text[from:to] {
		if Aside.MatchString(t) {
			if at := strings.Index(t, "Calls: "); at >= 0 {
				g.Calls = t[at:]
			}
			if lastCommand.MatchString(t) {
				command = "; " + strings.TrimSpace(t)
			}
			continue
		}
		join := " "
		if rest, ok := strings.CutPrefix(t, lead); ok && lead != "" && g.Text != "" {
			t, join = rest, "; "
		}
		w := plainWords(t)
		if _, said := Record(t); said != "" {
			w = said
		}
		if w != "" {
			if open || framed || join != " " {
				g.Title = strings.TrimLeft(g.Title+join+w, " ")
			}
			g.Text, g.At = strings.TrimLeft(g.Text+join+w, " "), from+i
			open = unfinished(t)
		}
	}
	if g.Calls == "" && to < len(text) && strings.HasPrefix(text[to], "Execution halted") {
		g.Calls = "Execution halted" // the calls of an R program that has no functions of its own
	}
	if g.Text == "" || endWords.MatchString(g.Text) {
		return nil
	}
	g.Title = logtext.Short(g.Title, 300-min(len(command), 100)) + command
	return g
}

// inFrame reports whether a line is between two separators, or between its own heading and a separator.
func inFrame(text []string, at int) bool {
	above := heading.MatchString(text[at])
	for i := at - 1; i >= 0 && i >= at-frameAbove; i-- {
		if Separator(text[i]) {
			above = true
			break
		}
	}
	return above && slices.ContainsFunc(text[at+1:min(len(text), at+messageLines)], Separator)
}

// Separator reports whether a line only separates other lines. Such a line consists of a few
// characters, repeated.
func Separator(t string) bool {
	t = strings.TrimSpace(t)
	return len(t) >= 10 && strings.Trim(t, "-=*%#_+~|!") == ""
}

// deeper reports whether a line is indented more than the first line of its message.
func deeper(first, t string) bool {
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	return indent(t) > indent(first)
}

// leadOf returns the beginning of a line up to the colon after the error word. Each line of a message may have the same
// beginning.
func leadOf(t string) string {
	at := errorWord.FindStringIndex(t)
	if at == nil {
		return ""
	}
	if i := strings.IndexByte(t[at[1]:], ':'); i >= 0 {
		return t[:at[1]+i+1]
	}
	return ""
}

// plainWords returns a line of a message without the frame around it. It is empty if the line has no words.
func plainWords(t string) string {
	t = strings.Trim(t, decoration)
	if rule := strings.Trim(t, "- "); len(t)-len(rule) > 8 {
		t = rule
	}
	letters := 0
	for _, r := range t {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 {
			letters++
		}
	}
	if letters < 2 || strings.EqualFold(t, "[abort]") || strings.HasSuffix(t, "--- Error Message") {
		return ""
	}
	return t
}

// FortranStop matches the STOP message of a Fortran program that has done its work. Programs in other languages also
// print such a message when they end as planned.
var FortranStop = textmatch.New(`(?i)^\W*(?:fortran )?stop\b\W*(?:normal|success|done|ok\b|finished|complete|end of|all |training|early|after|condition|criteri)|^\W*(?:fortran )?stop\b\W*(?:\w+ )?(?:n?_?steps?|n?cycles|(?:final|end|stop|simulation|requested|target|max\w*)[ _](?:time|step|cycle)s?|t_?(?:end|max|stop|final)|end|target|last \w+|tolerance|convergence) (?:was |is |has been )?(?:reached|met|achieved|done|completed?)\b`)
