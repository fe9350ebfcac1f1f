package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/failure"
)

// TestTypos checks what gangrun suggests for typing errors, and for commands and flags of other programs.
func TestTypos(t *testing.T) {
	t.Setenv("GANGRUN_HOME", t.TempDir())
	for words, want := range map[string]string{
		"rnu":                            "did you mean gangrun run?",
		"log last":                       "did you mean gangrun logs?",
		"list":                           "did you mean gangrun ps?",
		"kill last":                      "did you mean gangrun stop?",
		"start -- true":                  "did you mean gangrun run?",
		"version":                        "did you mean gangrun --version?",
		"mpirun -n 2 true":               "did you mean gangrun mpiexec?",
		"job.yaml":                       "a job is started by gangrun run job.yaml",
		"blurb":                          "gangrun --help lists the commands",
		"help blurb":                     "gangrun --help lists the commands",
		"run -np 2 -- true":              "did you mean -n?",
		"run -n4 -- true":                "did you mean -n 4?",
		"run --rnaks 2 -- true":          "did you mean --ranks?",
		"run --nproc_per_node=2 -- true": "did you mean -n?",
		"run --gpus 1 -- true":           "did you mean --gpus-per-rank?",
		"run -H h1 -- true":              "did you mean --hosts?",
		"run -x A=b -- true":             "did you mean --env?",
		"run --no-preflight -- true":     "did you mean --preflight off?",
		"run --json -- true":             "did you mean -o json?",
		"status last --json":             "did you mean -o json?",
		"logs --tail":                    "did you mean --follow?",
		"clean --all":                    "did you mean --older 0s?",
		"leases --clear":                 "did you mean --release?",
		"ps -n 3":                        "gangrun ps --help lists the flags",
		"plan --gpus 2":                  "did you mean --gpus-per-rank?",
		"completion":                     "write gangrun completion bash, zsh or fish",
		"run nosuch.yaml":                "give the path of a job file",
		"diagnose last":                  "gangrun report RUN tells the cause of a run",
		"status one two":                 "write gangrun status RUN",
		"run job.yaml python train.py":   "write the command after --: gangrun run job.yaml -- COMMAND",
		"preflight job.yaml python t.py": "write the command after --: gangrun preflight job.yaml -- COMMAND",
		"run --timeout 10 -- true":       "gangrun run --help lists the flags",
	} {
		var said bytes.Buffer
		code := run(slices.Concat([]string{"gangrun"}, strings.Fields(words)), io.Discard, &said)
		_, hint, _ := strings.Cut(said.String(), "\ngangrun: hint: ")
		if code != failure.CodeUsage || !strings.HasPrefix(said.String(), "gangrun: error: ") || !strings.Contains(hint, want) {
			t.Errorf("gangrun %s: exit code %d, want %d and the hint %q, said\n%s", words, code, failure.CodeUsage, want, said.String())
		}
	}
}

// TestUnknownFlagAsTyped checks that gangrun quotes an unknown flag as the user has typed it.
func TestUnknownFlagAsTyped(t *testing.T) {
	t.Setenv("GANGRUN_HOME", t.TempDir())
	for words, want := range map[string]string{
		"run -np 2 -- true":       `gangrun run has no flag "-np"`,
		"run --np=2 -- true":      `gangrun run has no flag "--np"`,
		"run -n2 -- true":         `gangrun run has no flag "-n2"`,
		"run --rnaks 2 -- -rnaks": `gangrun run has no flag "--rnaks"`,
		"ps -z":                   `gangrun ps has no flag "-z"`,
		"run -n -1 -- true":       "--ranks: ranks is -1, but must be 1 to 131072",
	} {
		var said bytes.Buffer
		run(slices.Concat([]string{"gangrun"}, strings.Fields(words)), io.Discard, &said)
		if line, _, _ := strings.Cut(said.String(), "\ngangrun: hint: "); line != "gangrun: error: "+want {
			t.Errorf("gangrun %s: got %s, want %s", words, line, want)
		}
	}
}

// TestSuggestions checks that the suggested commands and flags exist.
func TestSuggestions(t *testing.T) {
	flags := commandFlags()
	for word, command := range otherCommands {
		if flags[command] == nil && command != "--version" {
			t.Errorf("%s: there is no command %q", word, command)
		}
		if flags[word] != nil {
			t.Errorf("%s is a command", word)
		}
	}
	for word, flag := range otherFlags {
		name, _, _ := strings.Cut(flag, " ")
		if !slices.Contains(flags[""], name) {
			t.Errorf("%s: there is no flag %q", word, name)
		}
	}
}
