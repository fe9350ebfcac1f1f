package jobfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want func(*job.Spec) // changes the defaults to the expected Spec
	}{
		"empty":             {"", func(*job.Spec) {}},
		"only comments":     {"# nothing\n\n", func(*job.Spec) {}},
		"empty document":    {"---\n...\n", func(*job.Spec) {}},
		"empty mapping":     {"{}\n", func(*job.Spec) {}},
		"byte order mark":   {"\ufeffranks: 2\n", func(s *job.Spec) { s.Ranks = 2 }},
		"CRLF":              {"ranks: 2\r\nname: x\r\n", func(s *job.Spec) { s.Ranks, s.Name = 2, "x" }},
		"JSON":              {"{\"ranks\": 2,\n\t\"command\": [\"a\", \"b c\"]}\n", func(s *job.Spec) { s.Ranks, s.Command = 2, []string{"a", "b c"} }},
		"quoted number":     {`ranks: "2"`, func(s *job.Spec) { s.Ranks = 2 }},
		"command as line":   {"command: python 'a b' --lr 0.1\n", func(s *job.Spec) { s.Command = []string{"python", "a b", "--lr", "0.1"} }},
		"command as list":   {"command: [python, 'a b > c', 0.10, yes, -1e5, \"\", 2024-01-01]\n", func(s *job.Spec) { s.Command = []string{"python", "a b > c", "0.10", "yes", "-1e5", "", "2024-01-01"} }},
		"command as block":  {"command: >-\n  python x.py\n  --y\n", func(s *job.Spec) { s.Command = []string{"python", "x.py", "--y"} }},
		"command continued": {"command: |\n  python x.py \\\n  --y\n", func(s *job.Spec) { s.Command = []string{"python", "x.py", "--y"} }},
		"env as written": {"env: {A: 0x10, B: 1e-3, C: on, D: 'q', E: \"\", F: 010, 1: x, G: !!str 5}", func(s *job.Spec) {
			s.Env = map[string]string{"A": "0x10", "B": "1e-3", "C": "on", "D": "q", "E": "", "F": "010", "1": "x", "G": "5"}
		}},
		"nothing after lists":   {"env:\ninputs:\ntrial:\npolicy:\nsecret:\ncommand:\n", func(*job.Spec) {}},
		"empty list":            {"inputs: []\n", func(s *job.Spec) { s.Inputs = []string{} }},
		"trial off":             {"trial: off\n", func(s *job.Spec) { s.Trial.Mode = job.TrialOff }},
		"trial Off, quoted":     {"trial: 'Off'\n", func(s *job.Spec) { s.Trial.Mode = job.TrialOff }},
		"trial no":              {"trial: no\n", func(s *job.Spec) { s.Trial.Mode = job.TrialOff }},
		"trial false":           {"trial: false\n", func(s *job.Spec) { s.Trial.Mode = job.TrialOff }},
		"trial on":              {"trial: on\n", func(*job.Spec) {}},
		"trial uncontained":     {"trial: uncontained\n", func(s *job.Spec) { s.Trial.Mode = job.TrialUncontained }},
		"trial mode as a key":   {"trial: {mode: off}\n", func(s *job.Spec) { s.Trial.Mode = job.TrialOff }},
		"trial off as a key":    {"trial: {off: yes, time: 90s}\n", func(s *job.Spec) { s.Trial.Mode, s.Trial.Time = job.TrialOff, job.Duration(90*time.Second) }},
		"preflight off":         {"preflight: off\n", func(s *job.Spec) { s.Preflight = job.PreflightOff }},
		"tty on":                {"tty: on\n", func(s *job.Spec) { s.TTY = job.TTYOn }},
		"tty off":               {"tty: off\n", func(s *job.Spec) { s.TTY = job.TTYOff }},
		"stdin number":          {"stdin: 0\n", func(s *job.Spec) { s.Stdin = "0" }},
		"stdin of a later rank": {"stdin: 7\n", func(s *job.Spec) { s.Stdin = "7" }},
		"zero durations":        {"grace: 0\ntimeout: 0s\n", func(s *job.Spec) { s.Grace = 0 }},
		"policy": {"policy: {unknown: again, hang: never}\n", func(s *job.Spec) {
			s.Policy = map[job.Category]job.Action{job.Unknown: job.RetryAgain, job.Hang: job.RetryNever}
		}},
		"secret": {"secret: [A, B]\n", func(s *job.Spec) { s.Secret = []string{"A", "B"} }},
		"aliases": {"env: &e {A: &a x}\ncommand: &c [p, *a]\ntrial: {env: *e, command: *c}\n", func(s *job.Spec) {
			s.Env, s.Trial.Env = map[string]string{"A": "x"}, map[string]string{"A": "x"}
			s.Command, s.Trial.Command = []string{"p", "x"}, []string{"p", "x"}
		}},
		"alias as a key":          {"name: &n K\nenv: {*n : v}\n", func(s *job.Spec) { s.Name = "K"; s.Env = map[string]string{"K": "v"} }},
		"binary":                  {"command: [a, !!binary /w==]\n", func(s *job.Spec) { s.Command = []string{"a", "\xff"} }},
		"relative paths are left": {"workdir: a\ncheckpoint-dir: ../b\ninputs: [c, /d]\n", func(s *job.Spec) { s.Workdir, s.CheckpointDir, s.Inputs = "a", "../b", []string{"c", "/d"} }},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("job.yaml", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			got, want := job.Default(), job.Default()
			f.Apply(&got)
			c.want(&want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	var many strings.Builder
	for i := range 30 {
		many.WriteString("nonsense" + strings.Repeat("z", i) + ": 1\n")
	}
	for name, c := range map[string]struct {
		file  string
		want  []string // each error, without the name of the file
		hints string   // what the hints of the errors must contain
	}{
		"unknown key":               {"name: x\n\n  \nrank: 4\n", []string{`4:1: unknown key "rank", did you mean "ranks"?`}, ""},
		"unknown key, indented":     {"trial:\n  step: 4\n", []string{`2:3: unknown key "step" in trial, did you mean "steps"?`}, ""},
		"trial off and its mode":    {"trial: {mode: on, off: true}\n", []string{`1:19: trial has both off and mode`}, "take off away"},
		"unknown key, underscore":   {"exit_code: rank\n", []string{`1:1: unknown key "exit_code", did you mean "exit-code"?`}, ""},
		"unknown key, nothing near": {"kubernetes: 4\n", []string{`1:1: unknown key "kubernetes"`}, "the keys are: name, command, ranks"},
		"a flag's letter":           {"n: 4\n", []string{`1:1: unknown key "n", did you mean "ranks"?`}, ""},
		"a key of trial outside":    {"steps: 4\n", []string{`1:1: unknown key "steps", did you mean "steps" inside of "trial"?`}, ""},
		"a dotted key":              {"trial.steps: 4\n", []string{`1:1: unknown key "trial.steps", did you mean "steps" inside of "trial"?`}, ""},
		"a key of the file inside":  {"trial: {retries: 4}\n", []string{`1:9: unknown key "retries" in trial, which is a key of the file itself`}, "beside trial"},
		"unknown in trial":          {"trial: {volumes: 4}\n", []string{`1:9: unknown key "volumes" in trial`}, "the keys of trial are: command, args"},
		"a long key":                {strings.Repeat("x", 100) + ": 4\n", []string{`1:1: unknown key "` + strings.Repeat("x", 60) + `"...`}, "the keys are"},
		"key with a newline":        {"\"a\\nb\": 4\n", []string{`1:1: unknown key "a\nb"`}, "the keys are"},

		"not a number":       {"ranks: four\n", []string{`1:8: ranks wants a whole number, not "four"`}, ""},
		"a fraction":         {"ranks: 4.0\n", []string{`1:8: ranks wants a whole number, not "4.0"`}, ""},
		"an octal number":    {"ranks: 010\n", []string{`1:8: ranks wants a plain whole number, not "010"`}, ""},
		"list for a number":  {"ranks: [4]\n", []string{`1:8: ranks wants a whole number, or two as in 8..16, not a list`}, ""},
		"map for a number":   {"ranks:\n  n: 4\n", []string{`2:3: ranks wants a whole number, or two as in 8..16, not a mapping`}, ""},
		"nothing for number": {"ranks:\nname: ~\n", []string{`1:7: ranks wants a whole number, or two as in 8..16, not nothing`, `2:7: name wants text, not nothing`}, `write "" for an empty text`},
		"too many ranks":     {"ranks: 1000000\n", []string{`1:8: ranks is 1000000, but must be 1 to 131072`}, ""},
		"no ranks":           {"ranks: 0\n", []string{`1:8: ranks is 0, but must be 1 to 131072`}, ""},
		"negative retries":   {"retries: -1\n", []string{`1:10: retries is -1, but must be 0 or more`}, ""},
		"loopback":           {"loopback: 257\n", []string{`1:11: loopback is 257, but must be 0 to 256`}, ""},
		"huge number":        {"ranks: 99999999999999999999\n", []string{`1:8: ranks wants a whole number, not "99999999999999999999"`}, ""},
		"not a switch":       {"resume: maybe\n", []string{`1:9: resume wants true or false, not "maybe"`}, ""},

		"bare number for time": {"grace: 5\ntimeout: 1.5\n", []string{`1:8: grace "5" has no unit, write 5s`, `2:10: timeout "1.5" has no unit, write 1.5s`}, ""},
		"not a duration":       {"grace: soon\n", []string{`1:8: grace wants a duration with a unit, as in 30s, 5m or 1h30m, not "soon"`}, ""},
		"negative duration":    {"grace: -5s\n", []string{`1:8: grace wants a duration with a unit, as in 30s, 5m or 1h30m, not "-5s"`}, ""},
		"days":                 {"timeout: 2d\n", []string{`1:10: timeout wants a duration with a unit, as in 30s, 5m or 1h30m, not "2d"`}, ""},
		"no trial time":        {"trial: {time: 0s, steps: 0}\n", []string{`1:15: trial.time is 0s, but must be more than 0`, `1:26: trial.steps is 0, but must be 1 or more`}, ""},
		"wrong choice":         {"preflight: ful\n", []string{`1:12: preflight wants one of full, static, off, not "ful", did you mean "full"?`}, ""},
		"wrong choice, far":    {"output: quiet\n", []string{`1:9: output wants one of first, all, failed, none, not "quiet"`}, ""},
		"wrong stdin":          {"stdin: noone\n", []string{`1:8: stdin wants the number of a rank, or one of all, none, not "noone", did you mean "none"?`}, ""},
		"wrong trial":          {"trial: full\n", []string{`1:8: trial wants a mapping, or off, not "full"`}, ""},
		"trial list":           {"trial: [off]\n", []string{`1:8: trial wants a mapping, or off, not a list`}, ""},

		"env as a list":       {"env: [TOKEN=abc]\n", []string{`1:6: env wants a mapping of names to values, not a list`}, "env: {LR: 0.1"},
		"env as text":         {"env: TOKEN=abc\n", []string{`1:6: env wants a mapping of names to values, not text`}, "env: {LR: 0.1"},
		"env with a list":     {"env:\n  A: [abc]\n  B:\n", []string{`2:6: env.A wants text, a number, true or false, not a list`, `3:5: env.B wants text, a number, true or false, not nothing`}, `write ""`},
		"env with a bad name": {"env:\n  A: x\n  B=C: x\n", []string{`3:3: environment variable "B=C" has a name or value that no process can be given`}, ""},
		"env with a NUL":      {"env:\n  A: \"abc\\0\"\n", []string{`2:3: environment variable "A" has a name or value that no process can be given`}, ""},
		"secret as text":      {"secret: TOKEN\n", []string{`1:9: secret wants a list of names of variables, not "TOKEN"`}, "secret: [ONE, TWO]"},
		"secret with a value": {"secret: [A, B=c]\n", []string{`1:13: secret has "B=c", which is no name of a variable`}, ""},
		"inputs as text":      {"inputs: data.csv\n", []string{`1:9: inputs wants a list of paths, not "data.csv"`}, "inputs: [ONE, TWO]"},
		"inputs with a map":   {"inputs: [a, {b: c}, ~]\n", []string{`1:13: item 2 of inputs wants text, not a mapping`, `1:21: item 3 of inputs wants text, not nothing`}, ""},
		"home directory":      {"inputs: [~/data]\nworkdir: ~/x\n", []string{`1:10: inputs "~/data" begins with ~, which only a shell expands`, `2:10: workdir "~/x" begins with ~, which only a shell expands`}, "write the whole path"},
		"empty input":         {"inputs: ['']\n", []string{`1:9: input "" is not a path`}, ""},
		"NUL in a path":       {`workdir: "a\0"`, []string{`1:10: workdir "a\x00" contains a NUL byte, as no path does`}, ""},
		"NUL in the command":  {`command: [a, "\0"]`, []string{`1:10: an argument of the command contains a NUL byte`}, ""},

		"hosts as a list":       {"hosts: [h1, h2:4]\n", []string{`1:8: hosts wants names in one text, as in h1,h2:4, not a list`}, "write hosts: h1,h2:4"},
		"hosts as another list": {"hosts:\n- a1\n- b1\n", []string{`2:1: hosts wants names in one text, as in h1,h2:4, not a list`}, "write hosts: a1,b1"},
		"hosts with slots each": {"hosts: [a1: 4]\n", []string{`1:8: hosts wants names in one text, as in h1,h2:4, not a list`}, "write hosts: h1,h2:4"},
		"hosts, none of them":   {"hosts: []\n", []string{`1:8: hosts wants names in one text, as in h1,h2:4, not a list`}, "write hosts: h1,h2:4"},
		"hosts as a mapping":    {"hosts: {a1: 4}\n", []string{`1:8: hosts wants names in one text, as in h1,h2:4, not a mapping`}, ""},
		"no network":            {"network: 10.0.0.0/99\n", []string{`1:10: network "10.0.0.0/99" is no network`}, "as 10.0.0.0/16"},

		"category":     {"policy: {unknwon: again}\n", []string{`1:10: policy names "unknwon", which is no category, did you mean "unknown"?`}, ""},
		"far category": {"policy: {everything: again}\n", []string{`1:10: policy names "everything", which is no category`}, "the categories are: incorrect-inputs"},
		"action":       {"policy: {unknown: agian}\n", []string{`1:19: policy.unknown wants one of never, once, again, elsewhere, not "agian", did you mean "again"?`}, ""},
		"action list":  {"policy: {unknown: [again]}\n", []string{`1:19: policy.unknown wants one of never, once, again, elsewhere, not a list`}, ""},
		"policy text":  {"policy: never\n", []string{`1:9: policy wants a mapping of categories to actions, not "never"`}, "policy: {unknown: again}"},

		"shell":            {"name: x\ncommand: python train.py > log\n", []string{`2:10: command has an unquoted ">", and no shell reads it`}, `[sh, -c, "..."]`},
		"open quote":       {"command: python it's\n", []string{`1:10: command has a quote ' that is never closed`}, "close it"},
		"two lines":        {"command: |\n  a\n  b\n", []string{`1:10: command has a second line, which a shell would take for a second command`}, ">-"},
		"no words":         {"command: []\n", []string{`1:10: there is no command to run`}, ""},
		"no program":       {"command: ['', a]\n", []string{`1:10: there is no command to run`}, ""},
		"no trial program": {"trial: {command: [''], args: ['']}\n", []string{`1:18: trial.command names no program`}, ""},
		"nested command":   {"command: [a, [b]]\n", []string{`1:14: item 2 of command wants text, not a list`}, ""},
		"command map":      {"command: {a: b}\n", []string{`1:10: command wants a list of words, or one line of them, not a mapping`}, ""},

		"twice":            {"ranks: 1\nname: x\nranks: 2\n", []string{`3:1: the key "ranks" stands here and on line 1`}, "keep one"},
		"twice, quoted":    {"ranks: 1\n'ranks': 2\n\"ranks\": 3\n", []string{`2:1: the key "ranks" stands here and on line 1`, `3:1: the key "ranks" stands here and on line 1`}, ""},
		"twice in env":     {"env:\n  A: 1\n  A: 2\n", []string{`3:3: the key "A" stands here and on line 2`}, ""},
		"merge key":        {"env: &e {A: 1}\ntrial:\n  env:\n    <<: *e\n", []string{`4:5: a job file has no merge key <<`}, "alias"},
		"list as a key":    {"? [a]\n: b\n", []string{`1:3: a key wants a name, not a list`}, ""},
		"nothing as a key": {"~: b\n", []string{`1:1: a key wants a name, not nothing`}, ""},
		"alias in itself":  {"env: &e\n  A: *e\n", []string{`2:6: env.A wants text, a number, true or false, not a mapping`}, ""},
		"tag of a list":    {"command: !!python/object/apply:os.system [echo, hi]\n", []string{`1:10: the tag "!!python/object/apply:os.system" is not allowed here in a job file`}, "take the tag away"},
		"tag of the file":  {"--- !job\ncommand: a\n", []string{`1:5: the tag "!job" is not allowed here in a job file`}, "take the tag away"},
		"tags of mappings": {"command: a\nenv: !!omap {A: b}\npolicy: !p {unknown: again}\ntrial: !x off\n", []string{`2:6: the tag "!!omap" is not allowed here in a job file`, `3:9: the tag "!p" is not allowed here in a job file`, `4:8: the tag "!x" is not allowed here in a job file`}, "take the tag away"},
		"tag of a key":     {"command: a\nenv: {!k A: b}\n", []string{`2:7: the tag "!k" is not allowed here in a job file`}, "take the tag away"},
		"unknown tag":      {"name: !secret x\nenv: {A: !!binary '*'}\n", []string{`1:7: the tag "!secret" is not allowed here in a job file`, `2:10: env.A is tagged !!binary, but is not base64`}, "take the tag away"},
		"top is text":      {"python train.py\n", []string{`1:1: a job file wants keys and their values, not "python train.py"`}, "a command stands after --"},
		"top is a list":    {"- ranks: 4\n", []string{`1:1: a job file wants keys and their values, not a list`}, ""},
		"two documents":    {"ranks: 1\n---\nranks: 2\n", []string{`2:1: a second document begins here, but a job file is one`}, "no ---"},
		"an empty second":  {"ranks: 1\n---\n", []string{`2:1: a second document begins here, but a job file is one`}, ""},
		"several":          {"rank: 1\ngrace: 5\ntrial: {step: 1}\n", []string{`1:1: unknown key "rank", did you mean "ranks"?`, `2:8: grace "5" has no unit, write 5s`, `3:9: unknown key "step" in trial, did you mean "steps"?`}, ""},

		"tab":                    {"trial:\n\tsteps: 1\n", []string{`2:1: a tab stands in the indentation`}, "blanks"},
		"tab after blanks":       {"ranks: 1\ntrial:\n  steps: 1\n  \ttime: 2s\n", []string{`4:3: a tab stands in the indentation`}, "blanks"},
		"colon in a value":       {"ranks: 1\nname: a: b\n", []string{`2:8: is not YAML: mapping values are not allowed in this context`}, "quotes"},
		"colon on the first":     {"name: a: b\n", []string{`1:8: is not YAML: mapping values are not allowed in this context`}, "quotes"},
		"open list":              {"ranks: 1\ninputs: [a, b\nname: c\n", []string{`3:5: is not YAML: did not find expected ',' or ']' (while parsing a flow sequence that begins on line 2)`}, "close the list"},
		"open mapping":           {"ranks: 1\n\nenv: {a: b\nname: c\n", []string{`4:5: is not YAML: did not find expected ',' or '}' (while parsing a flow mapping that begins on line 3)`}, "close the mapping"},
		"open quote in YAML":     {"ranks: 1\nname: \"c\nretries: 1\n", []string{`2:7: is not YAML: found unexpected end of stream`}, "close the quote"},
		"wrong indentation":      {"trial:\n  steps: 1\n time: 2s\n", []string{`3:2: is not YAML: did not find expected key (while parsing a block mapping that begins on line 1)`}, "indentation"},
		"key without colon":      {"ranks: 1\nname\nretries: 1\n", []string{`3:1: is not YAML: could not find expected ':' (while scanning a simple key that begins on line 2)`}, "colon"},
		"at sign":                {"ranks: 1\nname: @x\n", []string{`2:7: is not YAML: found character that cannot start any token`}, "quotes"},
		"unknown anchor":         {"# *x\nname: a\ninputs: [*x]\n", []string{`3:10: the alias "*x" has no anchor before it`}, "&x"},
		"glob as a value":        {"name: *.txt\n", []string{`1:7: the alias "*.txt" has no anchor before it`}, ""},
		"syntax in the second":   {"ranks: 1\n---\na: b: c\n", []string{`3:5: is not YAML: mapping values are not allowed in this context`}, ""},
		"bad UTF-8":              {"name: x\nname: a\xff\n", []string{`2:8: the byte 0xff here is no UTF-8`}, "UTF-8"},
		"UTF-16":                 {"\xff\xfen\x00", []string{`1:1: is text in UTF-16, not in UTF-8`}, "UTF-8"},
		"control character":      {"name: 'ä\x1b[1m'\n", []string{`1:9: the control character U+001B cannot stand in a job file`}, `"\u001b"`},
		"NUL":                    {"name: x\n\x00", []string{`2:1: the control character U+0000 cannot stand in a job file`}, ""},
		"too large":              {strings.Repeat("# filler\n", MaxSize/9+1), []string{` is larger than a job file may be (1048576 bytes)`}, ""},
		"more than can be shown": {many.String(), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("job.yaml", []byte(c.file))
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("error %#v, want Errors", err)
			}
			if c.want == nil {
				if last := errs[len(errs)-1].Error(); len(errs) != maxErrors+1 || last != "job.yaml:20: there are 10 errors more" {
					t.Errorf("%d errors, the last %q", len(errs), last)
				}
				return
			}
			var hints strings.Builder
			for _, e := range errs {
				hints.WriteString(e.Hint() + "\n")
			}
			want := "job.yaml:" + strings.Join(c.want, "\njob.yaml:")
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			if !strings.Contains(hints.String(), c.hints) {
				t.Errorf("hints %q, want %q among them", hints.String(), c.hints)
			}
			if strings.Contains(err.Error()+hints.String(), "abc") {
				t.Errorf("error %q shows a value of env", err)
			}
		})
	}
}

func TestAliasesAreBounded(t *testing.T) {
	var file bytes.Buffer
	file.WriteString("name: &a " + strings.Repeat("x", 10_000) + "\ninputs:\n")
	for range 200 {
		file.WriteString("- *a\n")
	}
	_, err := Parse("job.yaml", file.Bytes())
	if want := "stand for more than 1048576 bytes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}

	file.Reset() // each line stands for ten times as much as the line before
	file.WriteString("env: &l0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		before := "*l" + string(rune('a'+i-1))
		if i == 0 {
			before = "*l0"
		}
		file.WriteString("inputs" + string(rune('a'+i)) + ": &l" + string(rune('a'+i)) + " [" + strings.TrimSuffix(strings.Repeat(before+",", 10), ",") + "]\n")
	}
	file.WriteString("inputs: *ll\n")
	if _, err := Parse("job.yaml", file.Bytes()); err == nil || !strings.Contains(err.Error(), "item 1 of inputs wants text, not a list") {
		t.Errorf("error %v, want that lists are no inputs", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	read := func(path string, limit int64) ([]byte, error) {
		text, err := os.ReadFile(path)
		return text[:min(int64(len(text)), limit+1)], err
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte("ranks: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path, read)
	if err != nil {
		t.Fatal(err)
	}
	spec := job.Default()
	if f.Apply(&spec); spec.Ranks != 3 {
		t.Errorf("%d ranks, want 3", spec.Ranks)
	}

	if err := os.WriteFile(path, []byte("rnks: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, read); err == nil || err.Error() != path+`:1:1: unknown key "rnks", did you mean "ranks"?` {
		t.Errorf("error %v", err)
	}

	if err := os.WriteFile(path, bytes.Repeat([]byte("\n"), MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, read); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error %v", err)
	}

	var errs Errors
	if _, err := Load(filepath.Join(dir, "none"), read); !errors.As(err, &errs) || !strings.Contains(err.Error(), "no such file") || !strings.Contains(errs[0].Hint(), "give the path of a job file") {
		t.Errorf("error %v", err)
	}
	enough := errors.New("somebody has seen enough")
	if _, err := Load(path, func(string, int64) ([]byte, error) { return nil, enough }); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	if _, err := Load(dir, read); !errors.As(err, &errs) || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("error %v", err)
	}
}

// TestApplyLeavesOthersAlone checks that Specs do not share mappings.
func TestApplyLeavesOthersAlone(t *testing.T) {
	f, err := Parse("job.yaml", []byte("env: {A: 1}\npolicy: {hang: never}\n"))
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]string{"B": "2"}
	one, two := job.Default(), job.Default()
	one.Env = mine
	f.Apply(&one)
	f.Apply(&two)
	two.Env["C"] = "3"
	if len(mine) != 1 || !reflect.DeepEqual(one.Env, map[string]string{"A": "1", "B": "2"}) || len(two.Policy) != 1 {
		t.Errorf("mine %v, one %v, two %v", mine, one.Env, two)
	}
}
