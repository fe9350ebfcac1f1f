package jobfile

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed example.yaml
var example string

// mistakes is a job file with much wrong in it, for the documentation.
const mistakes = `command: python train.py > log
rank: 4
retries: three
grace: 5
patience: {iland: 10m, host: 2}
trial:
  step: 2
policy:
  unknown: agian
output: al
output: all
`

// Document writes docs/job-file.md: the job file and the flags of "gangrun
// run", by the table of fields.
func Document(w io.Writer) error {
	_, err := Parse("job.yaml", []byte(mistakes))
	_, err = io.WriteString(w, strings.NewReplacer(
		"{{example}}", example,
		"{{table}}", documentTable(),
		"{{mistakes}}", mistakes,
		"{{errors}}", documentErrors(err),
		"{{size}}", fmt.Sprintf("%d MiB", MaxSize>>20),
		"[[", "{{", "]]", "}}", // templates of commands, which would be taken for those of this text
		"´", "`", // no backquote can stand in the text itself
	).Replace(documentText))
	return err
}

func documentTable() string {
	var b strings.Builder
	b.WriteString("| key | flag | value | default | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range table {
		key, flag := "", ""
		if f.Key {
			key = "`" + f.Name + "`"
		}
		if f.Name == "command" {
			flag = "after `--`"
		}
		if f.Flag {
			flag = "`--" + f.Flagged() + "`"
			if f.Short != "" {
				flag = "`-" + f.Short + "` " + flag
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", key, flag, f.wants(), f.Default, f.Usage)
	}
	return b.String()
}

// documentErrors writes errors as the command shows them.
func documentErrors(err error) string {
	var b strings.Builder
	for _, e := range err.(Errors) {
		fmt.Fprintf(&b, "gangrun: error: %s\n", e)
		if e.Hint() != "" {
			fmt.Fprintf(&b, "gangrun: hint: %s\n", e.Hint())
		}
	}
	return b.String()
}

const documentText = `# The job file

<!-- Written by ´make docs´ from internal/jobfile. Change it there. -->

A job file says what ´gangrun run´ is to do, so that it need not be said on the command line each time.
It is YAML, UTF-8, one document, at most {{size}}.

´´´yaml
{{example}}´´´

## Keys and flags

Keys and flags have the same names, but for two: ´--trial´ is ´trial.mode´, and ´--trial-ranks´ is ´trial.ranks´. In the file, ´trial.steps´ is ´steps:´ inside of ´trial:´, and ´trial: off´ is short for ´trial: {mode: off}´.

{{table}}
## What wins

1. Defaults come first, then the file, then the flags: what comes later replaces what came before.
2. ´env´ is put together variable by variable: ´-e K=V´ replaces ´K´ of the file and leaves the others. ´-e K´ takes the value of ´K´ from the environment in which gangrun was started, and is an error where it has none.
3. A list is replaced as a whole. The words after ´--´ replace ´command´ as a whole.
4. A switch that is on in the file is turned off with ´--resume=false´.
5. An empty path (´--checkpoint-dir ''´) is as good as none.

## Paths

Relative ´workdir´ and ´checkpoint-dir´ are relative to the directory in which gangrun was started, in the file as on the command line; where the file lies does not matter.
Relative ´inputs´ are relative to ´workdir´. ´´ ~ ´´ and variables are not expanded.

## Commands

gangrun never builds a shell command line. A list of words is passed on as it stands.
One line of text is split at blanks; single quotes, double quotes and backslashes mean what they mean to a POSIX shell.
What a shell would have acted on is refused where it is not quoted: ´$´, backquotes, ´|´, ´&´, ´;´, ´<´, ´>´, ´(´, ´)´, ´*´, ´?´, a ´~´ or ´#´ that begins a word, ´NAME=value´ before the command, a second line.
Where a shell is wanted, it is named: ´command: [sh, -c, "python train.py > log"]´.

An argument, or a variable with its name, may have at most 131,071 bytes, and all of them together a quarter of the limit of the stack (´ulimit -s´), at most 6 MiB: Linux starts no process with more. What is longer, with its templates expanded as far as that is known, is refused before anything starts.

### Templates

Arguments may hold templates, which each rank has expanded for itself:

| template | what it stands for |
| --- | --- |
| ´[[.Rank]]´, ´[[.LocalRank]]´ | the number of the rank, in the gang and among those of its host |
| ´[[.Host]]´ | the name of the rank's host |
| ´[[.CheckpointDir]]´ | ´checkpoint-dir´; in the trial, a directory of the trial's own |
| ´[[.ResumeFrom]]´ | the checkpoint to start from, on a retry or with ´resume´; else empty |
| ´[[if .ResumeFrom]]a[[else]]b[[end]]´ | ´a´ where the field is neither empty nor 0, otherwise ´b´; ´[[else]]b´ may be left out |
| ´[["[["]]´ | two braces |

A condition may begin in one argument and end in a later one. An argument that a condition leaves empty is dropped, but for the first, which is the program; an argument such as ´[[.ResumeFrom]]´ alone stays, as an empty one. So

´´´yaml
command: [python, train.py, "[[if .ResumeFrom]]--resume", "[[.ResumeFrom]][[end]]"]
´´´

starts ´python train.py´ at first and ´python train.py --resume CHECKPOINT´ on a retry. In a command of one line, and in a shell, a template with a blank in it needs quotes. ´[[if .ResumeFrom]]--resume [[.ResumeFrom]][[end]]´ in one argument stays one argument, with a blank in it.

A field that does not exist (´[[.Foo]]´), a condition that is not closed, and whatever else says something about a field that gangrun cannot expand, is refused before anything starts. Other text in braces (´[[ x ]]´, ´[[range .]]´) reaches the program as it is written; what gangrun would take for its own, as in ´docker ps --format '[[.Names]]'´, is written ´[["[["]].Names]]´.

## Secrets

´secret´ lists names of variables whose values gangrun writes and shows nowhere: the copy of the job file that a run keeps has ´***´ instead, and so have the journal, the report, the closing lines and the lines of a failing rank that they quote. What the ranks print themselves is on the terminal and in their logs as they printed it, and arguments of the command are written down as they are.
A secret that ´env´ does not set is taken from the environment in which gangrun was started, as ´-e NAME´ does. So is one whose value is ´***´, as in that copy; where the environment lacks it, that is an error. A secret that is set nowhere is warned of.

A value is hidden as it is, and as it stands in a URL (percent-encoded), in JSON and in base64. Of a value of several lines, each line is hidden by itself. Values of less than 4 bytes are not hidden in quoted lines, and are warned of; nor are single lines, and other encodings, of less than 8 bytes: they would hide too much else.
On the command line, ´-e NAME=VALUE´ can be seen by every user of the machine (´ps´) while gangrun runs; ´-e NAME´, or ´secret´ alone, shows no value. The controller that ´--detach´ leaves has ´***´ in its command line for every value of ´-e´.

## YAML

Values are read as they are written: ´LR: 1e-3´ is the text ´1e-3´, and ´yes´ is ´yes´, wherever text is wanted.
Tags are those of YAML itself (´!!str´, ´!!int´, ´!!float´, ´!!bool´, ´!!null´, ´!!binary´, ´!!map´, ´!!seq´); any other, as ´!!python/object´ or ´!env´, is an error.
Anchors and aliases work; what they stand for may add up to {{size}}. Merge keys (´<<´) are not read.
A key that stands twice is an error, as is a value of the wrong kind. A list or mapping key with nothing after it sets nothing.

## Errors

Everything that is wrong is told at once, with its line and column, or with its flag. This file:

´´´yaml
{{mistakes}}´´´

gives:

´´´text
{{errors}}´´´
`
