package stacks

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// gdbArgs makes gdb print the stacks of a process, without the settings of the user, scripts that come
// with libraries, or questions.
func gdbArgs(pid int) []string {
	args := []string{"-nx", "-nh", "-batch"}
	for _, setting := range []string{"auto-load off", "debuginfod enabled off", "confirm off", "width 0", "height 0", "print frame-arguments none", "print entry-values no"} {
		args = append(args, "-iex", "set "+setting)
	}
	return append(args, "-p", strconv.Itoa(pid), "-ex", "thread apply all bt "+strconv.Itoa(maxFrames), "-ex", "detach")
}

// The lines of gdb and eu-stack.
var (
	gdbThread = regexp.MustCompile(`^Thread \d+ \(.*?(?:LWP|process) (\d+)\b`)
	gdbFrame  = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(.*)$`)
	gdbSource = regexp.MustCompile(`^(.*) at (.+):(\d+)$`)
	gdbFrom   = regexp.MustCompile(`^(.*) from (.+)$`)
	euThread  = regexp.MustCompile(`^TID (\d+):$`)
	euFrame   = regexp.MustCompile(`^#\d+ +0x[0-9a-f]+(?: - 1)?(?: ([^- ].*?|-[^ ].*?))??(?: - (/.*|\[.*\]))?$`)
	euSource  = regexp.MustCompile(`^ {4,}(\S.*?):(\d+)(?::\d+)?$`)
)

func parseGDB(out string) frames {
	got := frames{}
	tid := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := gdbThread.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			continue
		}
		m := gdbFrame.FindStringSubmatch(line)
		if m == nil || tid == 0 {
			continue
		}
		f := job.Frame{Function: m[1], Native: true}
		if m := gdbSource.FindStringSubmatch(f.Function); m != nil {
			f.Function, f.File = m[1], m[2]
			f.Line, _ = strconv.Atoi(m[3])
		} else if m := gdbFrom.FindStringSubmatch(f.Function); m != nil {
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
		if m := euThread.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			continue
		}
		stack := got[tid]
		if m := euFrame.FindStringSubmatch(line); m != nil && tid != 0 {
			name := m[1]
			if name == "" {
				name = unknown
			}
			got[tid] = append(stack, job.Frame{Function: plain(name), File: m[2], Native: true})
		} else if m := euSource.FindStringSubmatch(line); m != nil && len(stack) > 0 {
			f := &stack[len(stack)-1]
			f.File = m[1]
			f.Line, _ = strconv.Atoi(m[2])
		}
	}
	return got
}

// unknown is what gdb calls a function without a name.
const unknown = "??"

// plain removes what the GNU C library adds to names: versions, as in "read@@GLIBC_2.2.5", and __GI_.
func plain(name string) string {
	if i := strings.Index(name, "@"); i > 0 && !strings.Contains(name, " ") {
		name = name[:i]
	}
	return strings.TrimPrefix(name, "__GI_")
}

// The functions of the Python interpreter: the one that runs Python code, and those between it and a
// function in C that Python code calls.
var (
	evaluates = regexp.MustCompile(`^_?PyEval_EvalFrame`)
	plumbing  = regexp.MustCompile(`^(_?Py[A-Z_]\w*|cfunction_\w+|method_vectorcall\w*|vectorcall_\w+|slot_tp_\w+|type_call|method_call|` +
		`classmethoddescr_call|do_call_core|call_function|_PyObject_\w+|__Pyx_\w+|\?\?)(\.\w+)*$`)
)

// join makes one stack of the native frames of a thread and its Python frames: the functions in C that
// are called by the innermost Python function, and then the Python functions. It leaves out how
// the interpreter works.
func join(native, python []job.Frame) []job.Frame {
	if len(python) == 0 {
		return native
	}
	inner := 0
	for i, f := range native {
		if evaluates.MatchString(f.Function) {
			return append(native[:inner:inner], python...)
		}
		if !plumbing.MatchString(f.Function) {
			inner = i + 1
		}
	}
	return python
}
