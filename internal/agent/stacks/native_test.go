package stacks

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestParse(t *testing.T) {
	const eu = `PID 7 - process
TID 7:
#0  0x00007f021aa06545 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6
    ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48:7
#1  0x00000000005d64b4 - /usr/bin/python3.11
#2  0x000000000052b9e0 - 1 _PyEval_EvalFrameDefault - /usr/bin/python3.11
#3  0x00007ffd1a5f9af0 std::vector<int, std::allocator<int> >::operator-(int) - /opt/a - b/libx.so
#4  0x00007ffd1a5f9af0
TID 9:
#0  0x00007ffd1a5f9af0 - [vdso: 7]
eu-stack: dwfl_thread_getframes tid 9 at 0x7ffd in [vdso: 7]: No DWARF information found
`
	want := frames{
		7: {{Function: "clock_nanosleep", File: "../sysdeps/unix/sysv/linux/clock_nanosleep.c", Line: 48, Native: true},
			{Function: "??", File: "/usr/bin/python3.11", Native: true}, {Function: "_PyEval_EvalFrameDefault", File: "/usr/bin/python3.11", Native: true},
			{Function: "std::vector<int, std::allocator<int> >::operator-(int)", File: "/opt/a - b/libx.so", Native: true}, {Function: "??", Native: true}},
		9: {{Function: "??", File: "[vdso: 7]", Native: true}},
	}
	if got := parseEU(eu); !reflect.DeepEqual(got, want) {
		t.Errorf("eu-stack: got %+v\nwant %+v", got, want)
	}
	const gdb = `[New LWP 21282]
0x00007f021aa06545 in __GI___clock_nanosleep (clock_id=...) at ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48

Thread 2 (Thread 0x7f021a67b6c0 (LWP 21282) "python3 (w)"):
#0  0x00007f021aa06545 in __GI___clock_nanosleep (clock_id=..., flags=...) at ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48
#1  0x00000000005d64b4 in ?? ()
#2  0x0000000000677777 in Functor::operator() (this=...) from /opt/libx.so
#3  <signal handler called>

Thread 1 (process 21275):
#0  lock_b () at main.c:31
[Inferior 1 (process 21275) detached]
`
	want = frames{
		21282: {{Function: "__clock_nanosleep", File: "../sysdeps/unix/sysv/linux/clock_nanosleep.c", Line: 48, Native: true}, {Function: "??", Native: true},
			{Function: "Functor::operator()", File: "/opt/libx.so", Native: true}, {Function: "<signal handler called>", Native: true}},
		21275: {{Function: "lock_b", File: "main.c", Line: 31, Native: true}},
	}
	if got := parseGDB(gdb); !reflect.DeepEqual(got, want) {
		t.Errorf("gdb: got %+v\nwant %+v", got, want)
	}
}

func TestJoin(t *testing.T) {
	native := func(names ...string) (frames []job.Frame) {
		for _, name := range names {
			frames = append(frames, job.Frame{Function: name, Native: true})
		}
		return frames
	}
	python := []job.Frame{{Function: "average", File: "train.py", Line: 120}}
	for _, c := range []struct {
		native []job.Frame
		want   string
	}{
		{native("MPIDI_progress_test", "PMPI_Allreduce", "__Pyx_CyFunction_Call", "??", "PyObject_Vectorcall", "_PyEval_EvalFrameDefault", "main"), "MPIDI_progress_test PMPI_Allreduce average"},
		{native("_PyEval_EvalFrameDefault", "main"), "average"},
		{native("??", "no interpreter here"), "average"},
		{nil, "average"},
	} {
		if got := strings.Join(names(job.ThreadStack{Frames: join(c.native, python)}), " "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := join(native("read", "main"), nil); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}
