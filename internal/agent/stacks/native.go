package stacks

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// gdbArgs returns arguments with which gdb prints the stacks of a process. gdb then ignores the settings of
// the user, runs no scripts that come with libraries, and asks no questions.
func gdbArgs(pid int) []string {
	args := []string{"-nx", "-nh", "-batch"}
	for _, setting := range []string{"auto-load off", "debuginfod enabled off", "confirm off", "width 0", "height 0", "print frame-arguments none", "print entry-values no"} {
		args = append(args, "-iex", "set "+setting)
	}
	return append(args, "-p", strconv.Itoa(pid), "-ex", "thread apply all bt "+strconv.Itoa(maxFrames), "-ex", "detach")
}

// The forms of the lines that gdb and eu-stack print.
var (
	gdbThread = pattern.New(`^Thread \d+ \(.*?(?:LWP|process) (\d+)\b`)
	gdbFrame  = pattern.New(`^#\d+ +(?:0x[0-9a-f]+ in )?(.*)$`)
	gdbSource = pattern.New(`^(.*) at (.+):(\d+)$`)
	gdbFrom   = pattern.New(`^(.*) from (.+)$`)
	euThread  = pattern.New(`^TID (\d+):$`)
	euFrame   = pattern.New(`^#\d+ +0x[0-9a-f]+(?: - 1)?(?: ([^- ].*?|-[^ ].*?))??(?: - (/.*|\[.*\]))?$`)
	euSource  = pattern.New(`^ {4,}(\S.*?):(\d+)(?::\d+)?$`)
)

func parseGDB(out string) frames {
	got := frames{}
	tid := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := gdbThread().FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			continue
		}
		m := gdbFrame().FindStringSubmatch(line)
		if m == nil || tid == 0 {
			continue
		}
		f := job.Frame{Function: m[1], Native: true}
		if m := gdbSource().FindStringSubmatch(f.Function); m != nil {
			f.Function, f.File = m[1], m[2]
			f.Line, _ = strconv.Atoi(m[3])
		} else if m := gdbFrom().FindStringSubmatch(f.Function); m != nil {
			f.Function, f.File = m[1], m[2]
		}
		if i := strings.LastIndex(f.Function, " ("); i > 0 {
			f.Function = f.Function[:i] // without the arguments
		}
		f.Function = plain(f.Function)
		got[tid] = append(got[tid], f)
	}
	return got
}

func parseEU(out string) frames {
	got := frames{}
	tid := 0
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := euThread().FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			continue
		}
		stack := got[tid]
		if m := euFrame().FindStringSubmatch(line); m != nil && tid != 0 {
			name := m[1]
			if name == "" {
				name = unknown
			}
			got[tid] = append(stack, job.Frame{Function: plain(name), File: m[2], Native: true})
		} else if m := euSource().FindStringSubmatch(line); m != nil && len(stack) > 0 {
			f := &stack[len(stack)-1]
			f.File = m[1]
			f.Line, _ = strconv.Atoi(m[2])
		}
	}
	return got
}

// unknown is what gdb calls a function without a name.
const unknown = "??"

// plain removes from a name what the GNU C library adds: a version, as in "read@@GLIBC_2.2.5", and the prefix
// __GI_.
func plain(name string) string {
	if i := strings.Index(name, "@"); i > 0 && !strings.Contains(name, " ") {
		name = name[:i]
	}
	return strings.TrimPrefix(name, "__GI_")
}

// evaluates matches the function of the Python interpreter that runs Python code. plumbing matches the
// functions between it and a function in C that Python code calls.
var (
	evaluates = pattern.New(`^_?PyEval_EvalFrame`)
	plumbing  = pattern.New(`^(_?Py[A-Z_]\w*|cfunction_\w+|method_vectorcall\w*|vectorcall_\w+|slot_tp_\w+|type_call|method_call|` +
		`classmethoddescr_call|do_call_core|call_function|_PyObject_\w+|__Pyx_\w+|\?\?)(\.\w+)*$`)
)

// join makes one stack of the native and the Python frames of a thread: first the functions in C that the
// innermost Python function has called, then the Python functions. It omits the frames of the interpreter
// itself.
func join(native, python []job.Frame) []job.Frame {
	if len(python) == 0 {
		return native
	}
	inner := 0
	for i, f := range native {
		if evaluates.Match(f.Function) {
			return append(native[:inner:inner], python...)
		}
		if !plumbing.Match(f.Function) {
			inner = i + 1
		}
	}
	return python
}
