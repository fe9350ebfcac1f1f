package survey

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

const python = "/usr/bin/python3"

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// compiled builds a C program that needs libgangruntest.so. The library is in dir/lib, where the dynamic loader does
// not search.
func compiled(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "needy")
	library := filepath.Join(dir, "lib", "libgangruntest.so")
	agenttest.WriteFile(t, dir+"/lib/lib.c", "int answer(void) { return 42; }\n", 0o644)
	main := agenttest.WriteFile(t, dir+"/main.c", "int answer(void);\nint main(void) { return answer() != 42; }\n", 0o644)
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-Wl,-soname,libgangruntest.so", "-o", library, dir + "/lib/lib.c"},
		{"-o", program, main, library},
	} {
		if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	return program
}

// patched writes a copy of a program in which the first occurrence of old is replaced by new.
func patched(t *testing.T, program, to string, old, new []byte) string {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, old) {
		t.Fatalf("%s does not contain %q", program, old)
	}
	return agenttest.WriteFile(t, to, string(bytes.Replace(data, old, new, 1)), 0o755)
}

func TestSurveyProgram(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	needy := compiled(t, dir) // before Children reaps all children of this process
	other := byte(0xb7)       // aarch64
	if runtime.GOARCH == "arm64" {
		other = 0x3e // x86-64
	}
	head, err := os.ReadFile(needy)
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(head[:20])
	foreign[18], foreign[19] = other, 0
	patched(t, needy, dir+"/foreign", head[:20], foreign)
	patched(t, needy, dir+"/noloader", []byte("/lib"), []byte("/lob"))
	agenttest.WriteFile(t, dir+"/truncated", "\x7fELF\x02\x01\x01", 0o755)
	agenttest.WriteFile(t, dir+"/script", "#!/bin/sh\necho\n", 0o755)
	agenttest.WriteFile(t, dir+"/blanks", "#! \t/bin/sh -e\n", 0o755)
	agenttest.WriteFile(t, dir+"/env", "#!/usr/bin/env sh\n", 0o755)
	agenttest.WriteFile(t, dir+"/env-options", "#!/usr/bin/env -S nosuchprogram -u\n", 0o755)
	agenttest.WriteFile(t, dir+"/gone", "#!/no/such/python3 -u\n", 0o755)
	agenttest.WriteFile(t, dir+"/env-gone", "#!/usr/bin/env nosuchprogram\n", 0o755)
	agenttest.WriteFile(t, dir+"/windows", "#!/bin/sh\r\necho\r\n", 0o755)
	agenttest.WriteFile(t, dir+"/env-windows", "#!/usr/bin/env sh\r\n", 0o755)
	agenttest.WriteFile(t, dir+"/nobody", "#!\n", 0o755)
	agenttest.WriteFile(t, dir+"/text", "echo\n", 0o755)
	agenttest.WriteFile(t, dir+"/empty", "", 0o755)
	agenttest.WriteFile(t, dir+"/plain", "#!/bin/sh\n", 0o644)
	if err := errors.Join(unix.Mkfifo(dir+"/fifo", 0o755), os.Symlink("script", dir+"/link"), os.Symlink("nowhere", dir+"/dangling")); err != nil {
		t.Fatal(err)
	}
	c := processtest.New(t)
	survey := func(command string, env ...string) job.ProgramFact {
		v := Surveyor{Host: "h1", Env: environ.Overlay(os.Environ(), []string{"LD_LIBRARY_PATH="}, env), Children: c}
		return v.program(t.Context(), job.Survey{Command: []string{command}, Workdir: dir})
	}
	for _, c := range []struct {
		name, command string
		env           []string
		want          job.ProgramFact // Path is relative to dir; SHA256 and Bytes are tested if Executable is true
	}{
		{"script", "./script", nil, job.ProgramFact{Executable: true}},
		{"link", "./link", nil, job.ProgramFact{Executable: true}},
		{"blanks", "./blanks", nil, job.ProgramFact{Executable: true}},
		{"env", "./env", nil, job.ProgramFact{Executable: true}},
		{"env with options", "./env-options", nil, job.ProgramFact{Executable: true}},
		{"in PATH", "script", []string{"PATH=" + dir}, job.ProgramFact{Executable: true}},
		{"missing", "./absent", nil, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorMissing, Error: "no such file or directory"}}},
		{"not in PATH, and in the working directory", "script", []string{"PATH=/nowhere"}, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorMissing, Error: `"script" is not in PATH: file does not exist`}, Here: dir + "/script", Executable: true}},
		{"not in PATH, and no program", "plain", []string{"PATH=/nowhere"}, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorMissing, Error: `"plain" is not in PATH: file does not exist`}, Here: dir + "/plain"}},
		{"dangling link", "./dangling", nil, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorMissing, Error: "no such file or directory"}}},
		{"below a file", "./script/x", nil, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorMissing, Error: "not a directory"}}},
		{"not executable", "./plain", nil, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorPermission, Error: "permission denied"}}},
		{"directory", "./lib", nil, job.ProgramFact{PathFact: job.PathFact{Dir: true, Kind: job.ErrorKindOf, Error: "is a directory"}}},
		{"FIFO", "./fifo", nil, job.ProgramFact{PathFact: job.PathFact{Kind: job.ErrorPermission, Error: "permission denied"}}},
		{"missing interpreter", "./gone", nil, job.ProgramFact{Executable: true, Interpreter: "/no/such/python3"}},
		{"interpreter that env does not find", "./env-gone", nil, job.ProgramFact{Executable: true, Interpreter: "nosuchprogram"}},
		{"line ends of Windows", "./windows", nil, job.ProgramFact{Executable: true, Interpreter: "/bin/sh\r"}},
		{"line ends of Windows with env", "./env-windows", nil, job.ProgramFact{Executable: true, Interpreter: "sh\r"}},
		{"no interpreter", "./nobody", nil, job.ProgramFact{Executable: true, Format: "its #! line names no interpreter"}},
		{"text", "./text", nil, job.ProgramFact{Executable: true, Format: "it is neither an ELF program nor a script with a #! line"}},
		{"empty", "./empty", nil, job.ProgramFact{Executable: true, Format: "the file is empty"}},
		{"truncated ELF", "./truncated", nil, job.ProgramFact{Executable: true, Format: "its ELF header is damaged: EOF"}},
		{"missing library", "./needy", nil, job.ProgramFact{Executable: true, Missing: []string{"libgangruntest.so"}}},
		{"library in the ranks' environment", "./needy", []string{"LD_LIBRARY_PATH=" + dir + "/lib"}, job.ProgramFact{Executable: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := survey(c.command, c.env...)
			path := filepath.Join(dir, c.command)
			if c.want.Path = path; c.want.Here != "" {
				c.want.Path = c.command
			}
			if c.want.Executable && c.want.Here == "" {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				c.want.SHA256, c.want.Bytes = sum(string(data)), int64(len(data))
			}
			if !slices.Equal(got.Missing, c.want.Missing) {
				t.Errorf("missing are %q, want %q", got.Missing, c.want.Missing)
			}
			got.Missing, c.want.Missing = nil, nil
			if strings.HasPrefix(got.Format, "its ELF header is damaged: ") && c.want.Format != "" {
				got.Format = c.want.Format // the rest of the text comes from debug/elf
			}
			if got.PathFact != c.want.PathFact || got.SHA256 != c.want.SHA256 || got.Executable != c.want.Executable || got.Format != c.want.Format || got.Interpreter != c.want.Interpreter || got.Here != c.want.Here {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
	if got := survey("nosuchprogram"); got.Path != "nosuchprogram" || got.Kind != job.ErrorMissing || got.Executable || !strings.Contains(got.Error, "PATH") {
		t.Errorf("a program that is not in PATH: got %+v", got)
	}
	if got := survey("./foreign"); !got.Executable || !strings.Contains(got.Format, "it is made for EM_") || !strings.Contains(got.Format, runtime.GOARCH) {
		t.Errorf("a program for another machine: got %+v", got)
	}
	if got := survey("./noloader"); !got.Executable || !strings.HasPrefix(got.Interpreter, "/lob") || got.Format != "" {
		t.Errorf("a program without its dynamic loader: got %+v", got)
	}
	if err := os.Remove(dir + "/lib/libgangruntest.so"); err != nil {
		t.Fatal(err)
	}
	if got := survey("./needy", "LD_LIBRARY_PATH="+dir+"/lib"); !slices.Equal(got.Missing, []string{"libgangruntest.so"}) {
		t.Errorf("without the library: got %+v", got)
	}
}

// TestMissingLibraries checks that musl's dynamic loader is asked in its own way (the program has glibc's). An unknown
// dynamic loader must not be asked, because it might run the program.
func TestMissingLibraries(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"ld-musl-x86_64.so.1": `[ "$LD_TRACE_LOADED_OBJECTS$1 $#" = "--list 2" ] && printf '\tlibc.musl => /lib/ld-musl (0x1)\n' &&
			printf 'Error loading shared library lib%s.so: No such file or directory (needed by x)\n' one "$(basename "$2")" >&2; exit 127`,
		"ld-other.so.1": `echo 'libone.so => not found'`,
	} {
		agenttest.WriteFile(t, dir+"/"+name, "#!/bin/sh\n"+script+"\n", 0o755)
	}
	v := Surveyor{Env: os.Environ(), Children: processtest.New(t)}
	for name, want := range map[string][]string{
		"ld-musl-x86_64.so.1":  {"libone.so", "libtwo.so"},
		"ld-other.so.1":        nil,
		"ld-linux-absent.so.2": nil,
	} {
		if got, old := v.missing(t.Context(), dir+"/"+name, "/x/two"); !slices.Equal(got, want) || old != nil {
			t.Errorf("%s: got %q, %q, want %q", name, got, old, want)
		}
	}
}

// TestOldLibraries tests a library that is older than the one with which the program was built.
func TestOldLibraries(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/lib.c", "int answer(void) { return 42; }\n", 0o644)
	agenttest.WriteFile(t, dir+"/main.c", "int answer(void);\nint main(void) { return answer() != 42; }\n", 0o644)
	build := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	for _, version := range []string{"NEW_2.0", "OLD_1.0"} {
		script := agenttest.WriteFile(t, dir+"/"+version+"/script", version+" { global: answer; };\n", 0o644)
		build("-shared", "-fPIC", "-Wl,-soname,libaged.so", "-Wl,--version-script="+script, "-o", dir+"/"+version+"/libaged.so", dir+"/lib.c")
	}
	build("-o", dir+"/aged", dir+"/main.c", dir+"/NEW_2.0/libaged.so")
	children := processtest.New(t) // from now on, Children reaps all children of this process
	for version, want := range map[string][]string{"NEW_2.0": nil, "OLD_1.0": {"NEW_2.0 of libaged.so"}} {
		v := Surveyor{Env: environ.Overlay(os.Environ(), []string{"LD_LIBRARY_PATH=" + dir + "/" + version}), Children: children}
		fact := v.program(t.Context(), job.Survey{Command: []string{dir + "/aged"}, Workdir: dir})
		if !slices.Equal(fact.Old, want) || fact.Missing != nil {
			t.Errorf("%s: %+v", version, fact)
		}
	}
}

func TestSurveyScript(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	const good, bad = "import torch\nprint('train')\n", "import os\n\ndef train(:\n    pass\n"
	agenttest.WriteFile(t, dir+"/train.py", good, 0o644)
	agenttest.WriteFile(t, dir+"/bad.py", bad, 0o644)
	agenttest.WriteFile(t, dir+"/tabs.py", "if True:\n\tx = 1\n        y = 2\n", 0o644)
	agenttest.WriteFile(t, dir+"/nul.py", "x = 1\x00\n", 0o644)
	agenttest.WriteFile(t, dir+"/empty.py", "", 0o644)
	agenttest.WriteFile(t, dir+"/latin.py", "# -*- coding: latin-1 -*-\nx = '\xe9'\n", 0o644)
	agenttest.WriteFile(t, dir+"/package/__main__.py", bad, 0o644)
	agenttest.WriteFile(t, dir+"/bare/other.py", good, 0o644)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if _, err := z.Create("__main__.py"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), unix.Mkfifo(dir+"/fifo.py", 0o644)); err != nil {
		t.Fatal(err)
	}
	agenttest.WriteFile(t, dir+"/app.pyz", archive.String(), 0o644)
	v := Surveyor{Host: "h1", Env: os.Environ(), Children: processtest.New(t)}
	survey := func(compile bool, command ...string) *job.ScriptFact {
		return v.script(t.Context(), job.Survey{Command: command, Workdir: dir, Compile: compile}, python)
	}
	at := func(name string) job.PathFact {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return job.PathFact{Path: filepath.Join(dir, name), Bytes: info.Size(), Empty: info.Mode().IsRegular() && info.Size() == 0}
	}
	code := job.PathFact{Path: "<string>"}
	for _, c := range []struct {
		name    string
		command []string
		want    job.ScriptFact
		syntax  string // the beginning of the compiler's message
	}{
		{"good", []string{python, "-u", "train.py", "-c", "x"}, job.ScriptFact{PathFact: at("train.py"), SHA256: sum(good), Compiled: true}, ""},
		{"absolute", []string{python, dir + "/train.py"}, job.ScriptFact{PathFact: at("train.py"), SHA256: sum(good), Compiled: true}, ""},
		{"bad", []string{python, "bad.py"}, job.ScriptFact{PathFact: at("bad.py"), SHA256: sum(bad), Compiled: true, Line: 3, Source: "def train(:"}, "SyntaxError: "},
		{"bad code", []string{python, "-c", bad}, job.ScriptFact{PathFact: code, SHA256: sum(bad), Compiled: true, Line: 3, Source: "def train(:"}, "SyntaxError: "},
		{"code", []string{python, "-uc", "print(1)"}, job.ScriptFact{PathFact: code, SHA256: sum("print(1)"), Compiled: true}, ""},
		{"package", []string{python, "package"}, job.ScriptFact{PathFact: at("package/__main__.py"), SHA256: sum(bad), Compiled: true, Line: 3, Source: "def train(:"}, "SyntaxError: "},
		{"directory", []string{python, "bare"}, job.ScriptFact{PathFact: job.PathFact{Path: dir + "/bare/__main__.py", Kind: job.ErrorMissing, Error: "no such file or directory"}}, ""},
		{"missing", []string{python, "absent.py"}, job.ScriptFact{PathFact: job.PathFact{Path: dir + "/absent.py", Kind: job.ErrorMissing, Error: "no such file or directory"}}, ""},
		{"below a file", []string{python, "train.py/x"}, job.ScriptFact{PathFact: job.PathFact{Path: dir + "/train.py/x", Kind: job.ErrorMissing, Error: "not a directory"}}, ""},
		{"empty", []string{python, "empty.py"}, job.ScriptFact{PathFact: at("empty.py"), SHA256: sum(""), Compiled: true}, ""},
		{"other encoding", []string{python, "latin.py"}, job.ScriptFact{PathFact: at("latin.py"), SHA256: sum("# -*- coding: latin-1 -*-\nx = '\xe9'\n"), Compiled: true}, ""},
		{"zip application", []string{python, "app.pyz"}, job.ScriptFact{PathFact: at("app.pyz")}, ""},
		{"FIFO", []string{python, "fifo.py"}, job.ScriptFact{PathFact: at("fifo.py")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, compile := range []bool{true, false} {
				got, want := survey(compile, c.command...), c.want
				if got == nil {
					t.Fatal("got nothing")
				}
				if compile {
					if !strings.HasPrefix(got.Syntax, c.syntax) || (c.syntax == "") != (got.Syntax == "") {
						t.Errorf("the compiler says %q, want %q and what is wrong", got.Syntax, c.syntax)
					}
					got.Syntax = ""
				} else {
					want.Compiled, want.Line, want.Source = false, 0, ""
				}
				if *got != want {
					t.Errorf("compile %t:\n got %+v\nwant %+v", compile, *got, want)
				}
			}
		})
	}
	for name, want := range map[string]string{"tabs.py": "TabError: ", "nul.py": ""} {
		if got := survey(true, python, name); !got.Compiled || got.Syntax == "" || !strings.HasPrefix(got.Syntax, want) {
			t.Errorf("%s: got %+v, want an error %q", name, got, want)
		}
	}
	for _, command := range [][]string{{python}, {python, "-m", "x"}, {python, "-"}} {
		if got := survey(true, command...); got != nil {
			t.Errorf("%q runs no script, but got %+v", command, got)
		}
	}
	ask := job.Survey{Command: []string{"./train", "bad.py"}, Workdir: dir, Compile: true}
	if got := v.script(t.Context(), ask, "/bin/sh"); got != nil {
		t.Errorf("a program that is not Python runs no script of Python's, but got %+v", got)
	}
	if got := v.script(t.Context(), ask, python); got == nil || got.Line != 3 {
		t.Errorf("a link to Python: got %+v", got)
	}
}

// TestSurvey checks that one survey has all facts.
func TestSurvey(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/train.py", "print(1)\n", 0o644)
	agenttest.WriteFile(t, dir+"/data", "x", 0o644)
	v := Surveyor{Host: "h1", Env: os.Environ(), Children: processtest.New(t)}
	facts := v.Survey(t.Context(), job.Survey{
		Command: []string{python, "train.py"}, Workdir: dir, Inputs: []string{"data", "/absent", "./x/../data"}, CheckpointDir: dir + "/ckpt", Compile: true,
	})
	if facts.Host != "h1" || facts.Cores < 1 || facts.Memory < 1<<20 || facts.Time.IsZero() {
		t.Errorf("of the Host: %+v", facts)
	}
	if facts.Workdir.Path != dir || !facts.Workdir.Dir || facts.Workdir.Kind != job.ErrorNone {
		t.Errorf("of the working directory: %+v", facts.Workdir)
	}
	if !facts.Program.Executable || len(facts.Program.Missing) != 0 || facts.Program.Format+facts.Program.Interpreter != "" {
		t.Errorf("of the program: %+v", facts.Program)
	}
	if facts.Script == nil || !facts.Script.Compiled || facts.Script.Syntax != "" {
		t.Errorf("of the script: %+v", facts.Script)
	}
	if in := facts.Inputs; len(in) != 3 || in[0].Path != dir+"/data" || in[0].Bytes != 1 || in[1].Kind != job.ErrorMissing || in[2] != in[0] {
		t.Errorf("of the inputs: %+v", in)
	}
	if facts.Check == nil || !facts.Check.Created || facts.Check.Step != "" {
		t.Errorf("of the checkpoint directory: %+v", facts.Check)
	}
	facts = v.Survey(t.Context(), job.Survey{Command: []string{"./absent"}, Workdir: dir + "/train.py"})
	if facts.Workdir.Dir || facts.Workdir.Kind != job.ErrorNone {
		t.Errorf("of a working directory that is a file: %+v", facts.Workdir)
	}
	if facts.Program.Kind != job.ErrorMissing || facts.Script != nil || facts.Inputs != nil || facts.Check != nil {
		t.Errorf("of little that was asked for: %+v", facts)
	}
	if facts = v.Survey(t.Context(), job.Survey{Command: []string{"true"}, Workdir: dir + "/nowhere"}); facts.Workdir.Kind != job.ErrorMissing {
		t.Errorf("of a missing working directory: %+v", facts.Workdir)
	}
}
