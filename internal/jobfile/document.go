package jobfile

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed example.yaml
var example string

// mistakes is a job file with many mistakes, for the documentation.
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

// Document writes the page docs/job-file.md, which describes the job file and the flags of
// "gangrun run". The text comes from the table of fields.
func Document(w io.Writer) error {
	_, err := Parse("job.yaml", []byte(mistakes))
	_, err = io.WriteString(w, strings.NewReplacer(
		"{{example}}", example,
		"{{table}}", documentTable(),
		"{{mistakes}}", mistakes,
		"{{errors}}", documentErrors(err),
		"{{size}}", fmt.Sprintf("%d MiB", MaxSize>>20),
		"[[", "{{", "]]", "}}", // templates of commands; {{ in this text would be a template of the text itself
		"´", "`", // the text itself is in backquotes, and so cannot have any
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

// documentErrors writes errors in the form in which the command shows them.
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

A job file has the settings of a job, so that you need not give them to ´gangrun run´ each time.
It is one YAML document in UTF-8, of at most {{size}}.

´´´yaml
{{example}}´´´

## Keys and flags

Keys at the top level have the same names as their flags. Keys of ´trial:´, ´container:´, ´curve:´ and ´retry-on-diverge:´ may have other names than their flags: the table has both names. In the table, ´trial.steps´ is the key ´steps:´ inside of ´trial:´. In the file, ´trial: off´ is short for ´trial: {mode: off}´.

{{table}}
## Precedence

1. Flags take precedence over the file, and the file takes precedence over the defaults.
2. For ´env´, this holds for each variable: ´-e K=V´ replaces only the variable ´K´ of the file. ´-e K´ takes the value of ´K´ from the environment of gangrun. If ´K´ is not set there, that is an error.
3. A flag replaces a list of the file as a whole. The words after ´--´ replace ´command´ as a whole.
4. ´--resume=false´ switches off a setting that is on in the file.
5. An empty path (´--checkpoint-dir ''´) means none.

## Paths

If ´workdir´ or ´checkpoint-dir´ is a relative path, it is relative to the directory in which gangrun was started, both in the file and on the command line. The directory of the file does not matter.
Relative paths in ´inputs´ are relative to ´workdir´. gangrun expands neither ´´ ~ ´´ nor variables in paths.

## Commands

gangrun never builds a shell command line. It passes on a list of words unchanged.
It splits a line of text at blanks. Single quotes, double quotes and backslashes have the meaning that they have in a POSIX shell.
gangrun refuses the following unless they are quoted, because a shell would treat them specially: ´$´, backquotes, ´|´, ´&´, ´;´, ´<´, ´>´, ´(´, ´)´, ´*´, ´?´, a ´~´ or ´#´ that begins a word, ´NAME=value´ before the command, a second line.
To use a shell, name it: ´command: [sh, -c, "python train.py > log"]´.

Linux limits arguments and variables. Each argument, and each variable with its name, may have at most 131,071 bytes; all of them together may have a quarter of the limit on the stack (´ulimit -s´), but at most 6 MiB. gangrun refuses a longer command before it starts anything. To find the length, it expands the templates whose values it knows.

### Templates

Arguments may have templates, which gangrun expands for each rank:

| template | value |
| --- | --- |
| ´[[.Rank]]´, ´[[.LocalRank]]´ | the number of the rank, in the gang and among those of its host |
| ´[[.Host]]´ | the name of the rank's host |
| ´[[.CheckpointDir]]´ | ´checkpoint-dir´; in the trial it may be a separate directory |
| ´[[.ResumeFrom]]´ | the checkpoint to start from, on a retry or with ´resume´; otherwise empty |
| ´[[if .ResumeFrom]]a[[else]]b[[end]]´ | ´a´ if the field is neither empty nor 0, otherwise ´b´; ´[[else]]b´ is optional |
| ´[["[["]]´ | two braces |

A condition may begin in one argument and end in a later one. If an argument is empty because of a condition, gangrun removes it, except for the first argument, which is the program. An argument that is only ´[[.ResumeFrom]]´ stays, even if it is empty. So

´´´yaml
command: [python, train.py, "[[if .ResumeFrom]]--resume", "[[.ResumeFrom]][[end]]"]
´´´

starts ´python train.py´ at first and ´python train.py --resume CHECKPOINT´ on a retry. In a command of one line, and in a shell, quote a template that contains a blank. If ´[[if .ResumeFrom]]--resume [[.ResumeFrom]][[end]]´ is one argument, its expansion is one argument with a blank in it.

gangrun refuses an unknown field (´[[.Foo]]´), a condition without its end, and any other expression with a field that it cannot expand. It passes on other text in braces unchanged (´[[ x ]]´, ´[[range .]]´). To pass on text that looks like a field, as in ´docker ps --format '[[.Names]]'´, write ´[["[["]].Names]]´.

## Secrets

´secret´ lists variables whose values gangrun neither writes nor shows. It writes ´***´ in their place in the copy of the job file in the run's directory, in the journal, in the report and in the summary at the end. It also hides the values in lines of output that the journal, the report or the summary quotes. gangrun changes neither the output of ranks, on the terminal and in logs, nor the arguments of the command.
If ´env´ does not set a secret, gangrun takes its value from its own environment, as with ´-e NAME´. It warns if the secret is not set there either. In the copy of the job file in the run's directory, secrets have the value ´***´. If you start a job from such a copy, set the secrets in the environment of gangrun.

gangrun hides a value in its plain form, and encoded as in a URL, in JSON and in base64. If a value has several lines, gangrun hides each line separately. In quoted output, gangrun does not hide values of less than 4 bytes, and warns of them. It also does not hide a line of a value that has several lines, or an encoded form of a value, if that line or form has less than 8 bytes. Shorter texts occur in much other output, so hiding them would also hide that.
All users of the machine can see ´-e NAME=VALUE´ on the command line (´ps´) while gangrun runs. If you use only ´-e NAME´ or ´secret´, they cannot see the values. The controller of a run with ´--detach´ has ´***´ in its command line for every value of ´-e´.

## YAML

If a key needs text, gangrun reads the value literally: ´LR: 1e-3´ is the text ´1e-3´, and ´yes´ is ´yes´.
The tags of YAML itself are supported (´!!str´, ´!!int´, ´!!float´, ´!!bool´, ´!!null´, ´!!binary´, ´!!map´, ´!!seq´); any other, such as ´!!python/object´ or ´!env´, is an error.
Anchors and aliases are supported, up to {{size}} after their expansion. Merge keys (´<<´) are not supported.
A repeated key is an error, and so is a value of the wrong kind. A key that takes a list or a mapping may have no value; it then sets nothing.

## Errors

gangrun reports all errors at once: those of the file with their line and column, those of the command line with their flag. This file:

´´´yaml
{{mistakes}}´´´

gives:

´´´text
{{errors}}´´´
`
