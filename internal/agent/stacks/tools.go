package stacks

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/text"
)

// Limits of tools.
const (
	findLimit = time.Second
	// toolLimit bounds a tool for one process. gdb needs seconds for programs with
	// hundreds of libraries, and longer where ranks that wait use all cores.
	toolLimit = 8 * time.Second
)

// standardPath is where distributions install programs.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findTools returns the paths of the tools that the host has, by their names.
func (c *Collector) findTools(ctx context.Context) map[job.StackTool]string {
	all := standardPath
	for _, entry := range c.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok && value != "" {
			all = value + ":" + standardPath
		}
	}
	// A directory of PATH may be on a file system that hangs.
	for _, path := range []string{all, standardPath} {
		ctx, cancel := context.WithTimeout(ctx, findLimit)
		out, _ := c.Run.RunHelper(ctx, "/bin/sh", []string{"sh", "-c", "for tool; do command -v $tool; done; :", "sh",
			string(job.StackPySpy), string(job.StackEU), string(job.StackGDB)}, "/", []string{"PATH=" + path}, nil, false)
		hung := ctx.Err() != nil
		cancel()
		found := map[job.StackTool]string{}
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); filepath.IsAbs(line) {
				found[job.StackTool(filepath.Base(line))] = line
			}
		}
		if !hung {
			return found
		}
	}
	return nil
}

// run runs a tool. The shell is what hangs if the tool's own file does, and not the agent. The tool
// gets neither the settings of the program's libraries and Python, nor addresses of servers of
// debugging information.
func (c *Collector) run(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	argv := append([]string{"sh", "-c", `exec "$0" "$@"`, path}, args...)
	out, err := c.Run.RunHelper(ctx, "/bin/sh", argv, "/", []string{"PATH=" + standardPath, "LC_ALL=C"}, nil, true)
	return string(out), err
}

// frames are the frames of threads by TID, innermost first.
type frames map[int][]job.Frame

// inspect adds to a process of a rank what the best tools for it say. Frames of Python come from py-spy
// or from the program itself. Other frames come from a tool that stops the process for a moment.
func (c *Collector) inspect(ctx context.Context, r *rank, p *proc, found map[job.StackTool]string) {
	if !p.any(job.ProcessRunning, job.ProcessSleeping, job.ProcessDisk, job.ProcessStopped, job.ProcessTraced) {
		return // it has ended
	}
	var python frames
	var why []string
	note := func(text string) {
		if text != "" {
			why = append(why, text)
		}
	}
	if p.python {
		var text string
		python, text = c.pySpy(ctx, p, found[job.StackPySpy])
		if python == nil {
			note(text)
			if python, text = c.faults(ctx, r.target.Faults, p); python == nil {
				note(text)
			} else {
				p.tool = job.StackFaulthandler
			}
		} else {
			p.tool = job.StackPySpy
		}
	}
	native, tool, text := c.native(ctx, p, found)
	note(text)
	if native != nil && python == nil {
		p.tool = tool
	}
	for i := range p.threads {
		t := &p.threads[i]
		if joined := join(native[t.TID], python[t.TID]); len(joined) > 0 {
			t.Frames = joined
		}
	}
	p.why = strings.Join(why, "; ")
}

// native reads the stacks of a process by a tool that uses ptrace(2). It leaves a process alone that
// is stopped, so that it stays stopped, or that waits in the kernel, as the tool would wait for it.
// eu-stack comes first: it stops a process for the shorter time.
func (c *Collector) native(ctx context.Context, p *proc, found map[job.StackTool]string) (frames, job.StackTool, string) {
	stat, _ := procfs.ReadStat(p.pid)
	now := states[stat.State]
	switch {
	case now == job.ProcessStopped || now == job.ProcessTraced || p.any(job.ProcessStopped, job.ProcessTraced):
		return nil, "", "debuggers are not used on a process that is stopped"
	case p.any(job.ProcessDisk):
		return nil, "", "debuggers are not used on a process with a thread that no signal reaches"
	}
	var why string
	for _, tool := range []job.StackTool{job.StackEU, job.StackGDB} {
		path := found[tool]
		if path == "" || ctx.Err() != nil || !p.same() {
			continue
		}
		var args []string
		parse := parseEU
		if tool == job.StackEU {
			args = []string{"-p", strconv.Itoa(p.pid), "-s", "-m", "-n", strconv.Itoa(maxFrames)}
		} else {
			args, parse = gdbArgs(p.pid), parseGDB
		}
		out, err := c.run(ctx, path, args...)
		if err != nil {
			p.goOn()
		}
		if got := parse(out); len(got) > 0 {
			return got, tool, ""
		}
		why = refused(string(tool), out, err)
	}
	switch {
	case why != "":
		return nil, "", why
	case found[job.StackEU] == "" && found[job.StackGDB] == "":
		return nil, "", "neither eu-stack (of elfutils) nor gdb is installed"
	}
	return nil, "", "the time was over"
}

// goOn undoes what a tool that did not end by itself can leave behind: a stop of the process, or a stop
// that is still to be delivered. The process was not stopped before.
func (p *proc) goOn() {
	for _, tid := range threadIDs(p.pid, maxThreads) {
		data, _ := os.ReadFile(procfs.Path(p.pid, "task/"+strconv.Itoa(tid)+"/stat")) // the thread may have ended
		stat, err := procfs.ParseStat(data)
		if stopped := err == nil && stat.State == 'T'; (stopped || pending(p.pid, tid, unix.SIGSTOP)) && p.same() {
			_ = unix.Kill(p.pid, unix.SIGCONT) // which also takes back stops that are pending
			return
		}
	}
}

// refused says why a tool gave no stack, and what to do.
func refused(tool, out string, err error) string {
	low := strings.ToLower(out)
	if strings.Contains(low, unix.EPERM.Error()) || strings.Contains(low, unix.EACCES.Error()) {
		scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
		if s := strings.TrimSpace(string(scope)); s != "" && s != "0" {
			return tool + " may not look into the process: as root, run: sysctl kernel.yama.ptrace_scope=0"
		}
		return tool + " may not look into the process: run as root, or in a container with the capability SYS_PTRACE"
	}
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	switch {
	case len(lines) > 0:
		return tool + " failed: " + text.Clip(text.Printable(lines[len(lines)-1]), 200)
	case err != nil:
		return tool + " failed: " + err.Error()
	}
	return tool + " printed nothing"
}
