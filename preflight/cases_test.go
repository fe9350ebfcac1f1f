package preflight

import (
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// soundFacts returns the facts of hosts h1 to hN without any problem.
func soundFacts(n int) []job.Facts {
	facts := make([]job.Facts, n)
	for i := range facts {
		facts[i] = job.Facts{
			Host:    fmt.Sprintf("h%d", i+1),
			Workdir: job.PathFact{Path: "/w", Dir: true},
			Program: job.ProgramFact{PathFact: job.PathFact{Path: "/bin/train", Bytes: 10}, SHA256: "aaaa", Executable: true},
			Script:  &job.ScriptFact{PathFact: job.PathFact{Path: "/w/train.py", Bytes: 7}, SHA256: "5555", Compiled: i == 0},
			Inputs:  []job.PathFact{{Path: "/d/a.csv", Bytes: 5}, {Path: "/d/set", Dir: true}},
			Check:   &job.DirectoryFact{PathFact: job.PathFact{Path: "/c", Dir: true}, Free: 1 << 30, Largest: 100 << 20},
		}
	}
	return facts
}

func testSpec() job.Spec {
	s := job.Default()
	s.Command, s.Workdir, s.Ranks = []string{"train", "train.py"}, "/w", 4
	s.Inputs, s.CheckpointDir = []string{"/d/a.csv", "/d/set"}, "/c"
	return s
}

func broken(path string, kind job.ErrorKind, text string) job.PathFact {
	return job.PathFact{Path: path, Kind: kind, Error: text}
}

// imageFacts returns the facts of a host that cannot start a container.
func imageFacts(problem job.ImageProblem, text string) job.Facts {
	return job.Facts{Host: map[bool]string{true: "h2", false: "h1"}[problem == job.ImageNoRuntime], Image: &job.ImageFact{Name: "x:1", Problem: problem, Error: text}}
}

// unseen returns the fact of a path that exists on the host, but not in the container.
func unseen(path, mount string) job.PathFact {
	return job.PathFact{Path: path, Kind: job.ErrorMissing, Error: "no such file or directory", HostPath: path, Mount: mount}
}

// on changes the facts of some hosts. If hosts is empty, it changes the facts of all hosts.
func on(change func(*job.Facts), hosts ...int) func([]job.Facts) {
	return func(facts []job.Facts) {
		for i := range facts {
			if len(hosts) == 0 || slices.Contains(hosts, i+1) {
				change(&facts[i])
			}
		}
	}
}

var staticCases = []struct {
	name   string
	hosts  int
	change func([]job.Facts)
	want   []string // check severity category host: text
}{
	{"all is well", 3, on(func(*job.Facts) {}), nil},
	{"no script, no inputs, no checkpoint directory", 2, on(func(f *job.Facts) { f.Script, f.Inputs, f.Check = nil, nil, nil }), nil},

	{"workdir missing everywhere silences what depends on it", 3,
		on(func(f *job.Facts) {
			f.Workdir = broken("/w", job.ErrorMissing, "stat /w: no such file or directory")
			f.Program.Kind = job.ErrorMissing
			f.Program.SHA256 = f.Host
			f.Script.Kind = job.ErrorMissing
			f.Inputs[0].Kind = job.ErrorMissing
		}),
		[]string{`workdir error incorrect-inputs : the working directory "/w" does not exist (on all 3 hosts)`}},
	{"workdir cannot be entered on one host", 3,
		on(func(f *job.Facts) { f.Workdir = broken("/w", job.ErrorPermission, "permission denied") }, 2),
		[]string{`workdir error permission-error h2: the working directory "/w" cannot be entered: permission denied`}},
	{"workdir is a file, by kind", 1,
		on(func(f *job.Facts) { f.Workdir = broken("/w", job.ErrorKindOf, "not a directory") }),
		[]string{`workdir error incorrect-inputs h1: the working directory "/w" is not a directory`}},
	{"workdir is a file, by what it is", 1,
		on(func(f *job.Facts) { f.Workdir.Dir = false }),
		[]string{`workdir error incorrect-inputs h1: the working directory "/w" is not a directory`}},
	{"workdir on a dead disk", 1,
		on(func(f *job.Facts) { f.Workdir = broken("/w", job.ErrorIO, "input/output error") }),
		[]string{`workdir error storage-error h1: the working directory "/w" cannot be entered: input/output error`}},
	{"an error of no kind is one all the same", 1,
		on(func(f *job.Facts) { f.Workdir = broken("/w", job.ErrorNone, "odd") }),
		[]string{`workdir error storage-error h1: the working directory "/w" cannot be entered: odd`}},

	{"no containerd on one host silences what depends on it", 2,
		on(func(f *job.Facts) {
			*f = imageFacts(job.ImageNoRuntime, "there is no containerd here: /s does not exist")
		}, 2),
		[]string{`image error launch-error h2: the image needs containerd: there is no containerd here: /s does not exist; apptainer, singularity and enroot are not there either`}},
	{"containerd's socket", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageForbidden, "this user may not open /s") }),
		[]string{`image error permission-error h1: this user may not open /s`}},
	{"no image", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageMissing, "containerd has no image x") }),
		[]string{`image error incorrect-inputs h1: containerd has no image x`}},
	{"registry out of reach", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageUnpulled, "image x cannot be pulled") }),
		[]string{`image error network-error h1: image x cannot be pulled`}},
	{"registry refuses", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageRefused, "the registry refuses x") }),
		[]string{`image error permission-error h1: the registry refuses x`}},
	{"image for other machines", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImagePlatform, "image x is for [linux/arm64]") }),
		[]string{`image error incorrect-inputs h1: image x is for [linux/arm64]`}},
	{"truncated archive", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageBroken, "the archive is not a complete image: EOF") }),
		[]string{`image error incorrect-inputs h1: the archive is not a complete image: EOF`}},
	{"no room for the image", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageFull, "no space left on device") }),
		[]string{`image error disk-full h1: there is no room for the image: no space left on device`}},
	{"missing mount", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageMount, "cannot mount /data: no such file or directory") }),
		[]string{`image error incorrect-inputs h1: cannot mount /data: no such file or directory`}},
	{"no CDI device", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageDevice, "unresolvable") }),
		[]string{`image error launch-error h1: unresolvable`}},
	{"no entry point", 1,
		on(func(f *job.Facts) {
			*f = imageFacts(job.ImageEntry, "the entry point \"/x\" of the image cannot be executed")
		}),
		[]string{`image error launch-error h1: the entry point "/x" of the image cannot be executed`}},
	{"no such user", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageNoUser, "the image has no user \"x\"") }),
		[]string{`image error launch-error h1: the image has no user "x"`}},
	{"rootless containerd", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageRootless, "a containerd of a user's own cannot fly") }),
		[]string{`image error launch-error h1: a containerd of a user's own cannot fly`}},
	{"containerd refuses", 1,
		on(func(f *job.Facts) { *f = imageFacts(job.ImageFailed, "odd") }),
		[]string{`image error launch-error h1: no container can be started: odd`}},
	{"another image on one host", 3,
		func(facts []job.Facts) {
			for i := range facts {
				facts[i].Image = &job.ImageFact{Name: "x:1", Digest: "sha256:aa"}
			}
			facts[1].Image.Digest = "sha256:bb"
		},
		[]string{`image-same error launch-error h2: the image "x:1" is not the same one on h2 as on the other 2 hosts`}},
	{"not mounted", 1,
		on(func(f *job.Facts) {
			f.Script.PathFact = unseen("/w/train.py", "/w")
			f.Inputs[0] = unseen("/d/a.csv", "/d/a.csv")
			f.Check.PathFact = unseen("/c", "/c")
		}),
		[]string{
			`script error incorrect-inputs h1: the script "/w/train.py" exists on the host, but not in the container: it is not mounted`,
			`inputs error incorrect-inputs h1: the input "/d/a.csv" exists on the host, but not in the container: it is not mounted`,
			`checkpoint-dir error incorrect-inputs h1: the checkpoint directory "/c" exists on the host, but not in the container: it is not mounted`,
		}},
	{"program not mounted", 1,
		on(func(f *job.Facts) { f.Program.PathFact = unseen("/w/train", "/w") }),
		[]string{`program error incorrect-inputs h1: the program "/w/train" exists on the host, but not in the container: it is not mounted`}},
	{"working directory not mounted", 1,
		on(func(f *job.Facts) { f.Workdir = unseen("/w", "/w") }),
		[]string{`workdir error incorrect-inputs h1: the working directory "/w" exists on the host, but not in the container: it is not mounted`}},

	{"a missing program is one finding", 4,
		on(func(f *job.Facts) {
			f.Program = job.ProgramFact{PathFact: broken("", job.ErrorMissing, "not found"), Missing: []string{"libm.so.6"}}
			f.Script.Syntax, f.Script.Line = "invalid syntax", 1
		}, 2, 3),
		[]string{`program error launch-error : the program "train" does not exist or is not on PATH (on h2 and h3: 2 of 4 hosts)`}},
	{"program unreachable", 1,
		on(func(f *job.Facts) { f.Program.PathFact = broken("/x/train", job.ErrorPermission, "permission denied") }),
		[]string{`program error permission-error h1: the program "/x/train" may not be executed: permission denied`}},
	{"program without the x bit", 1,
		on(func(f *job.Facts) { f.Program.Executable = false }),
		[]string{`program error permission-error h1: the program "/bin/train" may not be executed: it is not executable`}},
	{"program is a directory, by kind", 1,
		on(func(f *job.Facts) { f.Program.PathFact = broken("/bin", job.ErrorKindOf, "is a directory") }),
		[]string{`program error launch-error h1: the program "/bin" is not a file that can be executed`}},
	{"program is a directory, by what it is", 1,
		on(func(f *job.Facts) { f.Program.Dir = true }),
		[]string{`program error launch-error h1: the program "/bin/train" is not a file that can be executed`}},
	{"program without its interpreter", 1,
		on(func(f *job.Facts) { f.Program.Interpreter = "/usr/bin/python9" }),
		[]string{`program error launch-error h1: the program "/bin/train" needs the interpreter "/usr/bin/python9", which does not exist`}},
	{"program with the line ends of Windows", 1,
		on(func(f *job.Facts) { f.Program.Interpreter = "/bin/sh\r" }),
		[]string{`program error launch-error h1: the program "/bin/train" needs the interpreter "/bin/sh\r", which does not exist`}},
	{"program of another machine", 1,
		on(func(f *job.Facts) {
			f.Program.Format, f.Program.Missing = "it is built for aarch64", []string{"libc.so.6"}
		}),
		[]string{`program error launch-error h1: the program "/bin/train" cannot be executed: it is built for aarch64`}},
	{"program on a dead disk", 1,
		on(func(f *job.Facts) { f.Program.PathFact = broken("/bin/train", job.ErrorIO, "input/output error") }),
		[]string{`program error storage-error h1: the program "/bin/train" cannot be read: input/output error`}},

	{"libraries too old", 1,
		on(func(f *job.Facts) { f.Program.Old = []string{"GLIBC_2.38 of libc.so.6"} }),
		[]string{`program-libraries error missing-library h1: the program "/bin/train" needs GLIBC_2.38 of libc.so.6: the libraries there are older than those for which it was built`}},
	{"libraries missing: each host's own", 3,
		func(facts []job.Facts) {
			facts[0].Program.Missing = []string{"liba.so.1", "libb.so.2"}
			facts[1].Program.Missing = []string{"liba.so.1", "libb.so.2"}
			facts[2].Program.Missing = []string{"libc.so.3"}
		},
		[]string{
			`program-libraries error missing-library : the program "/bin/train" needs liba.so.1 and libb.so.2, which the dynamic loader does not find (on h1 and h2: 2 of 3 hosts)`,
			`program-libraries error missing-library h3: the program "/bin/train" needs libc.so.3, which the dynamic loader does not find`}},

	{"one host has another program", 4,
		on(func(f *job.Facts) { f.Program.SHA256, f.Script = "bbbb", nil }, 3),
		[]string{`program-same warning  h3: the interpreter "/bin/train" is not the same file on h3 as on the other 3 hosts`}},
	{"two hosts have other programs, one is unknown", 6,
		func(facts []job.Facts) {
			for i := range facts {
				facts[i].Script = nil
			}
			facts[1].Program.SHA256, facts[4].Program.SHA256, facts[5].Program.SHA256 = "bbbb", "cccc", ""
		},
		[]string{`program-same error launch-error : the program "/bin/train" is not the same file on h2 and h5 as on the other 3 hosts`}},
	{"the first host is the odd one", 3,
		func(facts []job.Facts) {
			for i := range facts {
				facts[i].Script = nil
			}
			facts[0].Program.SHA256, facts[0].Program.Path = "bbbb", "/opt/train"
		},
		[]string{`program-same error launch-error h1: the program "/bin/train" is not the same file on h1 as on the other 2 hosts`}},
	{"no program has a majority", 2,
		func(facts []job.Facts) {
			facts[0].Script, facts[1].Script = nil, nil
			facts[1].Program.SHA256 = "bbbb"
		},
		[]string{`program-same error launch-error : the program "/bin/train" is not the same file on h1 and h2`}},
	{"an interpreter without a script differs", 2,
		func(facts []job.Facts) {
			for i := range facts {
				facts[i].Script, facts[i].Program.Path, facts[i].Program.SHA256 = nil, "/usr/bin/python3.12", facts[i].Host
			}
		},
		[]string{`program-same warning  : the interpreter "/usr/bin/python3.12" is not the same file on h1 and h2`}},

	{"script missing on one host", 3,
		on(func(f *job.Facts) {
			f.Script = &job.ScriptFact{PathFact: broken("/w/train.py", job.ErrorMissing, "no such file")}
		}, 3),
		[]string{`script error incorrect-inputs h3: the script "/w/train.py" does not exist`}},
	{"script unreadable", 1,
		on(func(f *job.Facts) {
			f.Script.PathFact = broken("/w/train.py", job.ErrorPermission, "permission denied")
		}),
		[]string{`script error permission-error h1: the script "/w/train.py" cannot be read: permission denied`}},
	{"script is a directory", 1,
		on(func(f *job.Facts) { f.Script.PathFact = broken("/w/train", job.ErrorKindOf, "it is a directory") }),
		[]string{`script error incorrect-inputs h1: the script "/w/train" is not a file that Python can run: it is a directory`}},
	{"script on a dead disk", 1,
		on(func(f *job.Facts) { f.Script.PathFact = broken("/w/train.py", job.ErrorIO, "stale file handle") }),
		[]string{`script error storage-error h1: the script "/w/train.py" cannot be read: stale file handle`}},
	{"syntax error holds for all that have the script", 3,
		on(func(f *job.Facts) {
			f.Script.Syntax, f.Script.Line, f.Script.Source = "invalid syntax", 3, "for x in"
		}, 1),
		[]string{`python-syntax error syntax-error : "/w/train.py", line 3: invalid syntax: for x in (on all 3 hosts)`}},
	{"code that does not compile at any line", 1,
		on(func(f *job.Facts) { f.Script.Syntax, f.Script.Path = "ValueError: null bytes", "<string>" }),
		[]string{`python-syntax error syntax-error h1: "<string>": ValueError: null bytes`}},
	{"syntax error in one of two scripts", 3,
		on(func(f *job.Facts) {
			f.Script.Syntax, f.Script.Line, f.Script.SHA256 = "invalid syntax", 3, "6666"
		}, 1),
		[]string{
			`python-syntax error syntax-error h1: "/w/train.py", line 3: invalid syntax`,
			`script-same error launch-error h1: the script "/w/train.py" is not the same file on h1 as on the other 2 hosts`}},

	{"inputs: one missing everywhere, one forbidden on one host", 2,
		func(facts []job.Facts) {
			facts[0].Inputs[0], facts[1].Inputs[0] = broken("/d/a.csv", job.ErrorMissing, "x"), broken("/d/a.csv", job.ErrorMissing, "x")
			facts[1].Inputs[1] = broken("/d/set", job.ErrorPermission, "permission denied")
		},
		[]string{
			`inputs error incorrect-inputs : input "/d/a.csv" does not exist (on all 2 hosts)`,
			`inputs error permission-error h2: input "/d/set" cannot be read: permission denied`}},
	{"input of no known kind", 1,
		on(func(f *job.Facts) { f.Inputs[0] = broken("/d/a", job.ErrorKindOf, "it is a socket") }),
		[]string{`inputs error incorrect-inputs h1: input "/d/a" is neither a file nor a directory: it is a socket`}},
	{"input on a dead disk", 1,
		on(func(f *job.Facts) { f.Inputs[0] = broken("/d/a", job.ErrorIO, "input/output error") }),
		[]string{`inputs error storage-error h1: input "/d/a" cannot be read: input/output error`}},
	{"empty input", 2,
		on(func(f *job.Facts) { f.Inputs[1].Empty = true }, 2),
		[]string{`inputs warning  h2: input "/d/set" is empty`}},

	{"checkpoint directory: nothing above it", 1,
		on(func(f *job.Facts) {
			f.Check = &job.DirectoryFact{PathFact: broken("/x/c", job.ErrorMissing, "no such file"), Step: "create"}
		}),
		[]string{`checkpoint-dir error output-error h1: the checkpoint directory "/x/c" cannot be used: gangrun could not make it: no such file`}},
	{"checkpoint directory: forbidden, no word on its room", 2,
		on(func(f *job.Facts) {
			f.Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorPermission, "permission denied"), Step: "write"}
		}),
		[]string{`checkpoint-dir error permission-error : the checkpoint directory "/c" cannot be used: gangrun could not write a file in it: permission denied (on all 2 hosts)`}},
	{"checkpoint directory: read-only", 1,
		on(func(f *job.Facts) {
			f.Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorReadOnly, "read-only file system"), Step: "rename"}
		}),
		[]string{`checkpoint-dir error output-error h1: the checkpoint directory "/c" is on a file system that is mounted read-only: gangrun could not rename a file in it`}},
	{"checkpoint directory: a file", 1,
		on(func(f *job.Facts) {
			f.Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorKindOf, "not a directory"), Step: "create"}
		}),
		[]string{`checkpoint-dir error output-error h1: the checkpoint directory "/c" is not a directory`}},
	{"checkpoint directory: full", 1,
		on(func(f *job.Facts) {
			f.Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorFull, "disk quota exceeded"), Step: "sync"}
		}),
		[]string{`checkpoint-dir error disk-full h1: the checkpoint directory "/c" has no room left: gangrun could not sync a file in it to disk: disk quota exceeded`}},
	{"checkpoint directory: dead disk", 2,
		func(facts []job.Facts) {
			facts[0].Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorIO, "input/output error"), Step: "read"}
			facts[1].Check = &job.DirectoryFact{PathFact: broken("/c", job.ErrorIO, "input/output error")}
		},
		[]string{
			`checkpoint-dir error storage-error h1: the checkpoint directory "/c" cannot be used: gangrun could not read back a file in it: input/output error`,
			`checkpoint-dir error storage-error h2: the checkpoint directory "/c" cannot be used: gangrun could not use it: input/output error`}},

	{"room: just enough", 1, on(func(f *job.Facts) { f.Check.Free, f.Check.Largest = 200<<20, 100<<20 }), nil},
	{"room: just enough for an empty directory", 1, on(func(f *job.Facts) { f.Check.Free, f.Check.Largest = 16<<20, 0 }), nil},
	{"room: less than twice the largest", 1,
		on(func(f *job.Facts) { f.Check.Free = 200<<20 - 1 }),
		[]string{`checkpoint-room warning  h1: the checkpoint directory "/c" has 200 MiB free, less than twice its largest entry (200 MiB)`}},
	{"room: a file system that does not tell", 1, on(func(f *job.Facts) { f.Check.Free = 0 }), nil},
	{"room: little, told once for the tightest host", 3,
		func(facts []job.Facts) {
			for i, free := range []int64{9 << 20, 2 << 20, 1 << 30} {
				facts[i].Check.Free, facts[i].Check.Largest = free, 0
			}
		},
		[]string{`checkpoint-room warning  : the checkpoint directory "/c" has 2.0 MiB free, less than 16 MiB (on h1 and h2: 2 of 3 hosts)`}},
	{"room: less than the largest", 1,
		on(func(f *job.Facts) { f.Check.Free = 99 << 20 }),
		[]string{`checkpoint-room error disk-full h1: the checkpoint directory "/c" has 99 MiB free, less than its largest entry takes (100 MiB)`}},
	{"room: none", 1,
		on(func(f *job.Facts) { f.Check.Free, f.Check.Largest = 1<<19, 0 }),
		[]string{`checkpoint-room error disk-full h1: the checkpoint directory "/c" has 512 KiB free, less than 1.0 MiB`}},
}
