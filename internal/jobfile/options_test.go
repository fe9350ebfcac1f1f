package jobfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

type flag struct{ name, value string }

// finish combines a file, flags and a command as gangrun run does.
func finish(t *testing.T, file string, flags []flag, command ...string) (job.Spec, error) {
	t.Helper()
	o := NewOptions(environment(map[string]string{"HERE": "from outside", "EMPTY": ""}))
	if file != "" {
		f, err := Parse("job.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		o.Apply(f)
	}
	var errs []error
	for _, f := range flags {
		errs = append(errs, o.Set(f.name, f.value))
	}
	if len(command) > 0 {
		errs = append(errs, o.SetCommand(command))
	}
	if err := errors.Join(errs...); err != nil {
		return job.Spec{}, err
	}
	return o.Finish("/here")
}

func TestFlags(t *testing.T) {
	got, err := finish(t, "", []flag{
		{"name", "x"}, {"ranks", "8"}, {"loopback", "2"}, {"env", "A=1"}, {"env", "B=x=y,z"}, {"env", "HERE"}, {"env", "EMPTY"}, {"env", "A=2"},
		{"workdir", "w/../v"}, {"checkpoint-dir", "/c/"}, {"resume", "true"}, {"retries", "0"}, {"preflight", "static"}, {"health", "quick"},
		{"grace", "1m"}, {"timeout", "2h"}, {"output", "all"}, {"stdin", "7"}, {"tty", "off"}, {"exit-code", "verdict"}, {"mpi", "none"}, {"env-compat", "openmpi"}, {"launcher", "ssh"}, {"init-timeout", "3m"},
	}, "python", "a b", "")
	if err != nil {
		t.Fatal(err)
	}
	want := job.Default()
	want.Name, want.Ranks, want.Loopback, want.Command = "x", 8, 2, []string{"python", "a b", ""}
	want.Env = map[string]string{"A": "2", "B": "x=y,z", "HERE": "from outside", "EMPTY": ""}
	want.Workdir, want.CheckpointDir, want.Resume, want.Retries = "/here/v", "/c", true, 0
	want.Preflight, want.Output, want.Stdin, want.ExitCode = job.PreflightStatic, job.OutputAll, "7", job.ExitVerdict
	want.TTY, want.Health = job.TTYOff, job.HealthQuick
	want.MPI, want.EnvCompat, want.InitTimeout = job.MPINone, job.EnvCompatOpenMPI, job.Duration(3*time.Minute)
	want.Launcher = job.LauncherSSH
	want.Grace, want.Timeout = job.Duration(time.Minute), job.Duration(2*time.Hour)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestEveryFlagIsSet checks that every flag of the table accepts a value. A key that is no flag must be refused as a
// flag.
func TestEveryFlagIsSet(t *testing.T) {
	values := map[Kind]string{Number: "1", Range: "2..3", Switch: "yes", Text: "x", Path: "x", Duration: "2s", Stdin: "all", Hosts: "h1", Network: "eth0", Env: "A=b", Mounts: "/data", Size: "8GiB", EarlyStop: "plateau=stop", Real: "-0.5"}
	texts := map[string]string{"container.workdir": "/work", "container.user": "image", "progress": `step (?P<step>\d+)`}
	for _, f := range Fields() {
		value := values[f.Kind]
		if text := texts[f.Name]; text != "" {
			value = text
		}
		if f.Kind == Choice {
			value = f.Choices[len(f.Choices)-1]
		}
		if f.Name == "patience" {
			value = "island=1m,rack=strict"
		}
		err := NewOptions(environment(nil)).Set(f.Flagged(), value)
		if f.Flag && err != nil {
			t.Errorf("--%s %s: %v", f.Flagged(), value, err)
		}
		if !f.Flag && err == nil {
			t.Errorf("--%s is taken, but is no flag", f.Name)
		}
	}
}

// TestRange checks that a size is one number or a range of two.
func TestRange(t *testing.T) {
	for _, way := range []struct {
		file  string
		flags []flag
	}{{"ranks: 8..16\n", nil}, {"ranks: 16\nmin-ranks: 8\n", nil}, {"", []flag{{"ranks", "8..16"}}}, {"ranks: 3\n", []flag{{"ranks", "8..16"}}}} {
		spec, err := finish(t, way.file, way.flags, "x")
		if err != nil || spec.Ranks != 16 || spec.MinRanks != 8 {
			t.Errorf("%+v: %d..%d, %v", way, spec.MinRanks, spec.Ranks, err)
		}
	}
	if _, err := Parse("job.yaml", []byte("ranks: 16..8\n")); err == nil || err.Error() != `job.yaml:1:8: ranks "16..8" begins with the larger number, write 8..16` {
		t.Errorf("a range upside down: %v", err)
	}
}

func TestPrecedence(t *testing.T) {
	file := "command: from file\nranks: 2\nenv: {A: file, B: file}\nresume: yes\ncheckpoint-dir: ck\nworkdir: w\ninputs: [i]\ngrace: 1s\nstdin: none\n"
	spec, err := finish(t, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Ranks != 2 || spec.Command[1] != "file" || spec.Workdir != "/here/w" || spec.CheckpointDir != "/here/ck" || spec.Inputs[0] != "i" || !spec.Resume {
		t.Errorf("unexpected spec %+v", spec)
	}
	spec, err = finish(t, file, []flag{{"ranks", "3"}, {"env", "A=flag"}, {"resume", "false"}, {"checkpoint-dir", ""}, {"stdin", "2"}}, "echo")
	if err != nil {
		t.Fatal(err)
	}
	if spec.Ranks != 3 || !reflect.DeepEqual(spec.Command, []string{"echo"}) || spec.Resume || spec.CheckpointDir != "" || spec.Stdin != "2" || spec.Retries != 3 ||
		!reflect.DeepEqual(spec.Env, map[string]string{"A": "flag", "B": "file"}) || spec.Grace != job.Duration(time.Second) {
		t.Errorf("unexpected spec %+v", spec)
	}
}

func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ name, value, want, hint string }{
		{"ranks", "four", `--ranks: ranks wants a whole number, not "four"`, ""},
		{"ranks", "2..x", `--ranks: ranks wants a whole number, or two as in 8..16, not "2..x"`, ""},
		{"ranks", "x..2", `--ranks: ranks wants a whole number, or two as in 8..16, not "x..2"`, ""},
		{"ranks", "-1..2", `--ranks: ranks wants a whole number, or two as in 8..16, not "-1..2"`, ""},
		{"ranks", "4-8", `--ranks: ranks wants a whole number, or two as in 8..16, not "4-8"`, "write 4..8"},
		{"ranks", "4...8", `--ranks: ranks wants a whole number, or two as in 8..16, not "4...8"`, "write 4..8"},
		{"ranks", "8..4", `--ranks: ranks "8..4" begins with the larger number, write 4..8`, ""},
		{"ranks", "1..200000", `--ranks: ranks is 200000, but must be 1 to 131072`, ""},
		{"min-ranks", "4-8", `--min-ranks: min-ranks wants a whole number, not "4-8"`, ""},
		{"host-timeout", "1s", `--host-timeout: host-timeout 1s is too short, write 2s or more`, "once a second"},
		{"host-timeout", "0", `--host-timeout: host-timeout 0s is too short, write 2s or more`, "once a second"},
		{"orphan-grace", "1.9s", `--orphan-grace: orphan-grace 1.9s is too short, write 2s or more`, "once a second"},
		{"ranks", "0", `--ranks: ranks is 0, but must be 1 to 131072`, ""},
		{"ranks", "", `--ranks: ranks wants a whole number, not ""`, ""},
		{"grace", "5", `--grace: grace "5" has no unit, write 5s`, ""},
		{"preflight", "of", `--preflight: preflight wants one of full, static, off, not "of", did you mean "off"?`, ""},
		{"stdin", "-1", `--stdin: stdin wants the number of a rank, or one of all, none, not "-1"`, ""},
		{"env", "NOWHERE", `--env: "NOWHERE" is not set in the environment of gangrun`, "-e NOWHERE=VALUE"},
		{"env", "=abc", `--env: env has "", which is no name of a variable`, ""},
		{"env", "", `--env: env has "", which is no name of a variable`, ""},
		{"env", "A=\x00abc", `--env: environment variable "A" has a name or value that no process can be given`, ""},
		{"workdir", "~/x", `--workdir: workdir "~/x" begins with ~, which only a shell expands`, "whole path"},
		{"trial.mode", "off", `--trial.mode: is no flag of this command`, ""},
		{"trial", "of", `--trial: trial.mode wants one of on, off, uncontained, not "of", did you mean "off"?`, ""},
		{"trial-ranks", "x", `--trial-ranks: trial.ranks wants a whole number, not "x"`, ""},
		{"rank", "1", `--rank: is no flag of this command`, ""},
	} {
		err := NewOptions(environment(nil)).Set(c.name, c.value)
		var errs Errors
		if !errors.As(err, &errs) || err.Error() != c.want || !strings.Contains(errs[0].Hint(), c.hint) {
			t.Errorf("--%s %q: %v, want %s and a hint with %q", c.name, c.value, err, c.want, c.hint)
		}
	}
}

func TestNetwork(t *testing.T) {
	for _, text := range []string{"10.0.0.0/16", "10.0.0.7/32", "fd00::/8", "eth0", "bond0.100", "br-0123456789ab", "enp3s0f1np1"} {
		if err := NewOptions(nil).Set("network", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", ".", "..", "10.0.0.0/99", "10.0.0/8", "/", "eth0/1", "10.0.0.1", "fd00::1", "eth0:1", "eth0,eth1", "eth 0", "eth0\n", "a-name-that-is-too-long"} {
		err := NewOptions(nil).Set("network", text)
		var hinted interface{ Hint() string }
		if err == nil || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "10.0.0.0/16") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFinishSaysWhereFrom(t *testing.T) {
	const command = "command: a\n"
	for name, c := range map[string]struct {
		file    string
		flags   []flag
		command []string
		want    string
		hint    string
	}{
		"no command":                 {"", nil, nil, "there is no command to run", "after --"},
		"stdin of the file":          {command + "ranks: 4\nstdin: 4\n", nil, nil, "job.yaml:3:8: stdin names rank 4, but the gang has ranks 0 to 3", ""},
		"stdin, beside env":          {command + "env: {A: b}\nstdin: 1\n", []flag{{"env", "C=d"}}, nil, "job.yaml:3:8: stdin names rank 1, but the gang has ranks 0 to 0", ""},
		"stdin of a flag":            {command + "ranks: 4\nstdin: 4\n", []flag{{"stdin", "9"}}, nil, "--stdin: stdin names rank 9, but the gang has ranks 0 to 3", ""},
		"stdin, ranks of a flag":     {command + "ranks: 4\nstdin: 3\n", []flag{{"ranks", "2"}}, nil, "job.yaml:3:8: stdin names rank 3, but the gang has ranks 0 to 1", ""},
		"trial ranks":                {command + "trial: {ranks: 2}\n", nil, nil, "job.yaml:2:16: trial.ranks is 2, but must be 0 to ranks (1)", ""},
		"resume of the file":         {command + "resume: true\n", nil, nil, "job.yaml:2:9: resume needs a checkpoint-dir", ""},
		"resume of a flag":           {command, []flag{{"resume", "true"}}, nil, "--resume: resume needs a checkpoint-dir", ""},
		"the directory was unset":    {command + "resume: true\ncheckpoint-dir: c\n", []flag{{"checkpoint-dir", ""}}, nil, "job.yaml:2:9: resume needs a checkpoint-dir", ""},
		"several, the file's first":  {"stdin: 5\ntrial:\n  ranks: 3\n", []flag{{"resume", "true"}, {"ranks", "2"}}, nil, "job.yaml:1:8: stdin names rank 5, but the gang has ranks 0 to 1\njob.yaml:3:10: trial.ranks is 3, but must be 0 to ranks (2)\n--resume: resume needs a checkpoint-dir\nthere is no command to run", ""},
		"a hidden secret":            {command + "secret: [K, L, L]\nenv:\n  J: '***'\n  K: '***'\ntrial:\n  env: {L: '***'}\n", nil, nil, "job.yaml:5:3: the value of the secret \"K\" is hidden here, not written\njob.yaml:7:9: the value of the secret \"L\" is hidden here, not written", "-e K=VALUE"},
		"a hidden secret of a flag":  {command + "secret: [K]\n", []flag{{"env", "K=***"}}, nil, "--env: the value of the secret \"K\" is hidden here, not written", "-e K=VALUE"},
		"a command without a name":   {"", nil, []string{"", "a"}, "there is no command to run", ""},
		"a command with a NUL in it": {"", nil, []string{"a\x00"}, "an argument of the command contains a NUL byte", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := finish(t, c.file, c.flags, c.command...)
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %#v, want Errors", err)
			}
			if err.Error() != c.want || !strings.Contains(errs[0].Hint(), c.hint) {
				t.Errorf("got  %s (hint %q)\nwant %s", err, errs[0].Hint(), c.want)
			}
			var one *Error
			if !errors.As(err, &one) || one != errs[0] {
				t.Errorf("errors.As finds %v, want the first of the errors", one)
			}
		})
	}
}

// TestSecretGivenAnew checks that the job file of an earlier run can be run again.
func TestSecretGivenAnew(t *testing.T) {
	spec, err := finish(t, "secret: [KEY]\n", []flag{{"env", "KEY=abc"}, {"ranks", "2"}}, "a")
	if err != nil {
		t.Fatal(err)
	}
	data, err := Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "abc") {
		t.Errorf("the secret stands in\n%s", data)
	}
	if _, err := finish(t, string(data), nil); err == nil {
		t.Error("the hidden value is taken for the secret's")
	}
	again, err := finish(t, string(data), []flag{{"env", "KEY=abc"}})
	if err != nil || !reflect.DeepEqual(again, spec) {
		t.Errorf("got  %+v, %v\nwant %+v", again, err, spec)
	}
}

// TestSecretInherited checks that a secret gets its value from the environment of the caller if env does not set it,
// or has only a hidden value.
func TestSecretInherited(t *testing.T) {
	o := NewOptions(environment(map[string]string{"A": "caller-a", "B": "caller-b", "C": "caller-c", "D": "caller-d"}))
	f, err := Parse("job.yaml", []byte("command: a\nsecret: [A, B, C, NOSUCH]\nenv: {A: file, B: '***'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o.Apply(f)
	spec, err := o.Finish("/")
	want := map[string]string{"A": "file", "B": "caller-b", "C": "caller-c"}
	if err != nil || !reflect.DeepEqual(spec.Env, want) {
		t.Errorf("got %v, %v, want %v", spec.Env, err, want)
	}
	if again, err := o.Finish("/"); err != nil || !reflect.DeepEqual(again.Env, want) {
		t.Errorf("the second time: %v, %v, want %v", again.Env, err, want)
	}
}

// TestFinishIsApart checks that later settings do not change a finished Spec.
func TestFinishIsApart(t *testing.T) {
	o := NewOptions(environment(nil))
	for _, err := range []error{o.SetCommand([]string{"a"}), o.Set("env", "A=1")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	spec, err := o.Finish("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Set("env", "A=2"); err != nil {
		t.Fatal(err)
	}
	if spec.Env["A"] != "1" {
		t.Errorf("the finished spec has A=%s, want 1", spec.Env["A"])
	}
}
