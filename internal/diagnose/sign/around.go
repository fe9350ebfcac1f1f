package sign

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// damaged matches messages about a file that is not whole.
	damaged = textmatch.New(`(?i)\b(?:corrupt\w*|truncat\w*|checksum|crc(?:-?32)?|fletcher32|premature\w*|bad magic|wrong magic|invalid (?:header|magic|load key)|unexpected (?:end|eof)|end of file|incomplete|cut short|damaged|file signature)\b`)
	// restores matches lines about the state from which a program goes on: the program reads it, or fails to.
	restores = textmatch.New(`(?i)\b(?:(?:re)?(?:read|load|open|restor)\w*[ _](?:\S+ ){0,3}?\S*(?:restart|checkpoint|ckpt|_chk_|snapshot|\.cpt\b|\.rst\b)|\S*(?:restart|checkpoint|ckpt)\w*[ _](?:read|load|restor)\w*|resum(?:e|ing) from|restor(?:e|ing) from|restart(?:ing)? from)|_(?:read|load)_?(?:restart|checkpoint|ckpt|state)|(?:restart|checkpoint|ckpt)_?(?:read|load|restore)`)
)

// How far from a message the program may have said that it reads its state, in lines.
const (
	saidBefore = 3
	saidAfter  = 12
)

// outputCalls matches the functions of the libraries of Java, Go, Rust, JavaScript, Julia and C++ that make a file or a
// directory, where the stack traces of these languages show them.
var outputCalls = textmatch.New(`\b(?:FileOutputStream|FileWriter|PrintWriter|Files\.(?:write\w*|newOutputStream|newBufferedWriter|create\w+|copy|move)|os\.(?:Create\w*|Mkdir\w*|WriteFile|Rename)\(|File::create\w*|fs::(?:write|create_dir\w*|rename|copy)|(?:Object\.|fs\.)(?:writeFile|mkdir|createWriteStream|appendFile|rename)\w*|mkpath|create_director(?:y|ies))\b`)

// blameOutput changes the rule of signs that say that a file or directory is not there, if the functions that the stack
// trace lists make it.
func (f *finder) blameOutput() {
	for _, g := range f.Signs {
		if g.Class != "" && g.Context == "" && g.Rule.Signature == "missing-file" && slices.ContainsFunc(f.Lines[g.At+1:min(len(f.Lines), g.At+1+saidAfter)], outputCalls.MatchString) {
			g.Rule = rules.Named("missing-output-directory")
		}
	}
}

// blameState changes the rule of signs that say only that a file is damaged. If the lines around such a sign say that
// the program reads the state from which it is to go on, the file is a checkpoint.
func (f *finder) blameState() {
	for _, g := range f.Signs {
		vague := g.Rule.SaysLittle() || g.Rule.Category == job.IncorrectInputs && (g.Rule.Signature == "bad-format" || g.Rule.Signature == "bad-archive")
		if g.Class == "" || !vague || !damaged.MatchString(g.Text) {
			continue
		}
		if slices.ContainsFunc(f.Lines[max(0, g.From-saidBefore):min(len(f.Lines), g.To+saidAfter)], restores.MatchString) {
			g.Rule = rules.Named("checkpoint-exception")
		}
	}
}
