package survey

import (
	"slices"
	"strings"
	"testing"
)

func TestPythonProgram(t *testing.T) {
	for _, c := range []struct{ command, script, code string }{
		{"python3", "", ""},
		{"python3 train.py", "train.py", ""},
		{"python3 train.py -c x --lr 0.1", "train.py", ""},
		{"python3 -u train.py -m x", "train.py", ""},
		{"python3 -uBE -O -OO train.py", "train.py", ""},
		{"python3 -c CODE", "", "CODE"},
		{"python3 -cCODE x.py", "", "CODE"},
		{"python3 -uc CODE x.py", "", "CODE"},
		{"python3 -c", "", ""},
		{"python3 -m torch.distributed.run train.py", "", ""},
		{"python3 -mtimeit -s x train.py", "", ""},
		{"python3 -um pdb train.py", "", ""},
		{"python3 -W ignore train.py", "train.py", ""},
		{"python3 -Wignore train.py", "train.py", ""},
		{"python3 -bWerror train.py", "train.py", ""},
		{"python3 -X dev train.py", "train.py", ""},
		{"python3 -Xdev -Xcache train.py", "train.py", ""},
		{"python3 -uX dev -W error::x -c CODE", "", "CODE"},
		{"python3 -X", "", ""},
		{"python3 -", "", ""},
		{"python3 - data.py", "", ""},
		{"python3 -u - data.py", "", ""},
		{"python3 -- train.py -c x", "train.py", ""},
		{"python3 -- -c", "-c", ""},
		{"python3 -- -", "", ""},
		{"python3 --", "", ""},
		{"python3 --check-hash-based-pycs always train.py", "train.py", ""},
		{"python3 --check-hash-based-pycs", "", ""},
		{"pypy3 --jit off train.py", "train.py", ""},
		{"python3 --version", "", ""},
		{"python3 ./dir/", "./dir/", ""},
	} {
		script, code := pythonProgram(strings.Fields(c.command))
		if script != c.script || code != c.code {
			t.Errorf("%q runs the script %q and the code %q, want %q and %q", c.command, script, code, c.script, c.code)
		}
	}
}

func FuzzPythonProgram(f *testing.F) {
	for _, command := range []string{"python3\n-uc\nprint()\nx", "python3\n-X\ndev\n--\n-\na", "python3\n--jit\noff\nb.py", "p\n-W", "p\n-", "p\n\n"} {
		f.Add(command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		args := strings.Split(command, "\n")
		script, code := pythonProgram(args)
		if script != "" && code != "" {
			t.Fatalf("%q runs both the script %q and the code %q", args, script, code)
		}
		if script != "" && !slices.Contains(args[1:], script) {
			t.Fatalf("%q runs the script %q, which is none of them", args, script)
		}
		if code != "" && !slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasSuffix(arg, code) }) {
			t.Fatalf("%q runs the code %q, which is none of them", args, code)
		}
	})
}

func TestPythonName(t *testing.T) {
	for name, want := range map[string]bool{
		"python": true, "python3": true, "python3.11": true, "pypy3": true, "pypy": true,
		"python3-config": false, "ipython": false, "pythonw": false, "torchrun": false, "": false, "python3 ": false,
	} {
		if got := pythonName.Match(name); got != want {
			t.Errorf("%q is a Python interpreter: %t, want %t", name, got, want)
		}
	}
}
