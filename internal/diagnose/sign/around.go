package sign

import (
	"cmp"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/reason"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// damaged matches messages about a damaged or incomplete file.
	damaged = textmatch.New(`(?i)\b(?:corrupt\w*|truncat\w*|checksum|crc(?:-?32)?|fletcher32|premature\w*|bad magic|wrong magic|invalid (?:header|magic|load key)|unexpected (?:end|eof)|end of file|incomplete|cut short|corrupt|damaged|has \d+ bytes, expected|too short|shorter than|file signature|not a (?:zip|hdf5|gzip|npy|netcdf|valid)\w*(?: \w+)? ?file)\b`)
	// restores matches lines about the state from which a program goes on. The program reads the state, or fails to
	// read it.
	restores = textmatch.New(`(?i)\b(?:(?:re)?(?:read|load|open|restor)\w*[ _](?:\S+ ){0,3}?\S*(?:restart|checkpoint|ckpt|_chk_|snapshot|\.cpt\b|\.rst\b)|\S*(?:restart|checkpoint|ckpt)\w*[ _](?:read|load|restor)\w*|(?:load\w*|open|File|Dataset|fromfile|fopen|read\w*)\([^)]*(?:restart|checkpoint|ckpt|\bchk|snapshot|\.cpt\b|\.rst\b)|resum(?:e|ing) from|restor(?:e|ing) from|restart(?:ing)? from)|_(?:read|load)_?(?:restart|checkpoint|ckpt|state)|(?:restart|checkpoint|ckpt)_?(?:read|load|restore)`)
)

// How many lines before and after a message may say that the program reads its state.
const (
	saidBefore = 3
	saidAfter  = 12
)

// outputCalls matches calls that create a file or a directory, as the stack traces of Java, Go, Rust, JavaScript, Julia
// and C++ show them.
var outputCalls = textmatch.New(`\b(?:FileOutputStream|FileWriter|PrintWriter|Files\.(?:write\w*|newOutputStream|newBufferedWriter|create\w+|copy|move)|os\.(?:Create\w*|Mkdir\w*|WriteFile|Rename)\(|File::create\w*|mode="[wa]|, "[wa]\+?"\)|fs::(?:write|create_dir\w*|rename|copy)|(?:Object\.|fs\.)(?:writeFile|mkdir|createWriteStream|appendFile|rename)\w*|mkpath|create_director(?:y|ies))\b`)

// blameOutput changes the rule of signs which say that a file or directory is missing, if the functions in the stack
// trace create files.
func (f *finder) blameOutput() {
	for _, g := range f.Signs {
		if g.Class != "" && g.Context == "" && g.Rule.Signature == "missing-file" && slices.ContainsFunc(f.Lines[g.At+1:min(len(f.Lines), g.At+1+saidAfter)], outputCalls.MatchString) {
			g.Rule = rules.Named("missing-output-directory")
		}
	}
}

// selfEnded matches reports of MPI and of launchers that a rank has ended itself.
var selfEnded = textmatch.New(`\bMPI_ABORT was invoked\b|\bapplication called MPI_Abort\b|\bMPI_Abort ?\(-?\d+\)$|^(?:\S+: )?exit(?:ed)?(?: with)? (?:status|code):? [1-9]\d*$|^srun: error: .*: Exited with exit code [1-9]`)

// lastLines is how many lines before such a report are searched for the reason.
const lastLines = 4

// unannounced finds the last words of a program that has ended itself, if they tell the category. No word such as
// "error" announces these words.
func (f *finder) unannounced(taken []bool) *message.Message {
	if m := f.before(slices.IndexFunc(f.Lines, selfEnded.MatchString), taken); m != nil {
		return m
	}
	for i := len(f.Lines) - 1; i > max(0, len(f.Lines)-farewellLines); i-- {
		if !farewell.MatchString(f.Lines[i]) || taken[i-1] || !complains.MatchString(f.Lines[i-1]) && reason.Of(f.Lines[i-1]) == "" || f.tells(i-1) == nil {
			continue
		}
		return &message.Message{Text: f.Lines[i-1], Title: logtext.Short(f.Lines[i-1], 300), From: i - 1, At: i - 1, To: i}
	}
	return nil
}

var (
	// farewell matches a line in which a program says only that it ends, and not that its work is done.
	farewell = textmatch.New(`(?i)^\W*(?:\w+[ :]+)?(?:exit(?:ing|s)?|leav(?:ing|es?)|abort(?:ing|s|ed)?|stop(?:ping|s|ped)?|giv(?:ing|es?) up|quit(?:ting|s)?|dying|dies|abandon\w*|fail(?:ed|s|ing)?|gone|(?:cannot|can not|unable to) (?:go on|resume|continue|re-?start|proceed))(?:[,:]? (?:now|here|with|code|status|the (?:run|job)|rc|[1-9]\d{0,2}))*[.!]?$`)
	// complains matches a line which says that something is wrong.
	complains = textmatch.New(`(?i)\b(?:cannot|can ?not|can't|could ?n.t|could not|unable|fail\w*|not|no|bad|invalid|wrong|denied|refused|broken|missing|corrupt\w*|truncated|mismatch\w*|lost|nan|exceed\w*|full|unavailable|expected|error|unknown)\b`)
)

// farewellLines is how many of the last lines are searched for a farewell.
const farewellLines = 12

// LastWords returns a sign for the last words of a rank that has ended itself, or nil if they do not tell the category.
func LastWords(lines []string, book *rule.Book) *Sign {
	f := &finder{Text: Text{Lines: lines}, book: book, covered: make([]bool, len(lines))}
	end := len(lines)
	for end > 0 && (lines[end-1] == "" || message.Teardown.MatchString(lines[end-1]) || message.Separator(lines[end-1])) {
		end--
	}
	gone := false
	for i := end - 1; i >= max(0, end-lastLines); i-- { // what the rank said before its last work does not count
		_, said := message.Record(lines[i])
		gone = gone || message.Advance.MatchString(cmp.Or(said, lines[i]))
		f.covered[i] = gone
	}
	if m := f.before(end, f.covered); m != nil {
		g := Spoken(m)
		g.Rule = g.Match(book)
		return g
	}
	for i := end - 1; i >= max(0, end-lastLines); i-- { // if there is no such line, words that tell less count, too
		_, said := message.Record(lines[i])
		g := &Sign{Class: rule.Message, Text: cmp.Or(said, lines[i]), Title: logtext.Short(cmp.Or(said, lines[i]), 300), From: i, At: i, To: i + 1}
		if f.covered[i] {
			break
		}
		if len(g.Text) < 8 || message.Teardown.MatchString(lines[i]) || pytrace.Warning(lines[i]) || warns.MatchString(lines[i]) || outlook.Recovers(lines[i]) || outlook.Figures(lines[i]) || outlook.Echo(lines[i]) {
			continue
		}
		if g.Rule = g.Match(book); g.Rule != nil && g.Rule.Signature != rules.ProgramError && (g.Rule.Signature != "program-input" || said != "" || placed.MatchString(lines[i]) || message.Announces(lines[i])) && !g.Rule.Is(rule.Weak|rule.Generic|rule.Peer|rule.Verdict|rule.Mute) {
			return g
		}
	}
	return nil
}

// placed matches a line about a place in a file that the program has read.
var placed = textmatch.New(`^(?:\S+: )?[^\s:]+\.\w+:\d+(?::\d+)?: `)

// warns matches a line that begins as a warning.
var warns = textmatch.New(`(?i)^\W*(?:\S+ ){0,3}?warn(?:ing)?\b`)

// before returns, as a message, the last of the lines just before line end that tells the category. It returns nil if
// none does.
func (f *finder) before(end int, taken []bool) *message.Message {
	for i := end - 1; i >= max(0, end-lastLines); i-- {
		if f.Lines[i] == "" || message.Separator(f.Lines[i]) || taken[i] {
			continue
		}
		if f.tells(i) != nil {
			return &message.Message{Text: f.Lines[i], Title: logtext.Short(f.Lines[i], 300), From: i, At: i, To: i + 1}
		}
	}
	return nil
}

// tells returns line i as a sign, or nil if the line belongs to a sign already or does not tell the category.
func (f *finder) tells(i int) *Sign {
	if f.covered[i] {
		return nil
	}
	return f.means(i)
}

// means is like tells, but line i may belong to a sign.
func (f *finder) means(i int) *Sign {
	t := f.Lines[i]
	if len(t) < 8 || pytrace.Warning(t) || outlook.Figures(t) || outlook.Echo(t) || message.Teardown.MatchString(t) {
		return nil
	}
	if level, _ := message.Record(t); level == message.Info || level == message.Warning {
		return nil
	}
	h := &Sign{Class: rule.Message, Text: t}
	if h.Rule = h.Match(f.book); h.Rule == nil || rules.SaysLittle(h.Rule) && reason.Of(t) != h.Rule.Signature || h.Rule.Is(rule.Cascade|rule.Weak|rule.Generic|rule.Peer|rule.Verdict) {
		return nil
	}
	return h
}

// explains is how many lines before or after a message may tell its reason.
const explains = 2

// explain changes the rule of a message that says little to that of a nearby line that tells the reason. Programs often
// print the message of a library, and then one of their own.
func (f *finder) explain(g *Sign) {
	if g.Rule.Signature != rules.ProgramError {
		return
	}
	for i := g.To - 1 + explains; i >= max(0, g.From-explains); i-- {
		if i >= g.From && i < g.To || i >= len(f.Lines) {
			continue
		}
		h := f.tells(i)
		if h == nil {
			continue
		}
		g.Rule, g.Text, g.Title = h.Rule, h.Text, logtext.Short(h.Text, 200)+"; "+g.Title
		g.From, g.At, g.To = min(i, g.From), i, max(i+1, g.To)
		return
	}
}

// grown matches a line in which a solver reports that an error or a quantity of its solution has grown beyond all
// bounds.
var grown = textmatch.New(`(?i)\b(?:residuals?|continuity errors?|courant number|energy|velocity|pressure|temperature|density|k|epsilon|omega|loss|norm)\b.{0,120}[= ,:]-?(?:\d(?:\.\d+)?e\+(?:[1-9]\d|0[6-9])|nan)\b`)

// grownBefore is how many lines before a trapped arithmetic error such a report may be.
const grownBefore = 40

// blameGrowth changes the rule of trapped arithmetic errors of solvers whose solution had grown beyond all bounds.
func (f *finder) blameGrowth() {
	for _, g := range f.Signs {
		if g.Rule.Signature == "sigfpe" && slices.ContainsFunc(f.Lines[max(0, g.From-grownBefore):g.From], grown.MatchString) {
			g.Rule = rules.Named("solution-diverged")
		}
	}
}

// blameState changes the rule of signs which say only that a file is damaged, if the lines around the sign say that the
// program reads the state from which it goes on. The file is then a checkpoint.
func (f *finder) blameState() {
	all := f.Signs
	if f.Message != nil {
		all = append(all[:len(all):len(all)], f.Message)
	}
	for _, g := range all {
		vague := rules.SaysLittle(g.Rule) || g.Rule.Category == job.IncorrectInputs && (g.Rule.Signature == "bad-format" || g.Rule.Signature == "program-input" || g.Rule.Signature == "bad-archive") || g.Rule.Signature == "python-value-error"
		if g.Class == "" || !vague || !damaged.MatchString(g.Text) {
			continue
		}
		if slices.ContainsFunc(f.Lines[max(0, g.From-saidBefore):min(len(f.Lines), g.To+saidAfter)], restores.MatchString) {
			g.Rule = rules.Named("checkpoint-exception")
		}
	}
}

// inconclusive matches PyTorch's message that a collective failed or timed out, which does not say which of the two.
var inconclusive = textmatch.New(`NCCL operations have failed or timed out`)

// watchdogLines is how many lines after that message PyTorch may say which of the two happened.
const watchdogLines = 12

// dropInconclusive removes signs which say that a collective failed or timed out, if lines after the sign say why it
// failed.
func (f *finder) dropInconclusive() {
	f.Signs = slices.DeleteFunc(f.Signs, func(g *Sign) bool {
		return g.Class == "" && inconclusive.MatchString(g.Text) && slices.ContainsFunc(f.Signs, func(o *Sign) bool {
			return o != nil && o.From > g.From && o.From <= g.From+watchdogLines && o.Report == nil && o.Rule.Category != job.CollectiveTimeout && watchdogEnds.MatchString(f.Lines[o.From])
		})
	})
}

// watchdogEnds matches PyTorch's message that its watchdog has found an error.
var watchdogEnds = textmatch.New(`watchdog thread terminated with exception`)
