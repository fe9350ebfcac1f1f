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
	// toolLimit limits the time of a tool for one process. gdb needs seconds for programs with hundreds of libraries.
	// It needs longer if ranks that wait in a loop use all cores.
	toolLimit = 8 * time.Second
)

// standardPath has the directories in which distributions install programs.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findTools returns the paths of the tools that the host has.
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

// run runs a tool through a shell. If the tool is on a file system that hangs, the shell hangs and not the
// agent. The environment of the tool has no settings for the program's libraries or for Python, and no
// addresses of servers with debugging information.
func (c *Collector) run(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	argv := append([]string{"sh", "-c", `exec "$0" "$@"`, path}, args...)
	out, err := c.Run.RunHelper(ctx, "/bin/sh", argv, "/", []string{"PATH=" + standardPath, "LC_ALL=C"}, nil, true)
	return string(out), err
}

// frames has the frames of threads by their TIDs, innermost first.
type frames map[int][]job.Frame

// inspect adds the frames of a process, as the best tools for the process report them. Frames of Python come from
// py-spy or from the program itself. Other frames come from a tool that stops the process for a moment.
func (c *Collector) inspect(ctx context.Context, r *rank, p *proc, found map[job.StackTool]string) {
	if !p.any(job.ProcessRunning, job.ProcessSleeping, job.ProcessDisk, job.ProcessStopped, job.ProcessTraced) {
		return // the process has ended
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

// native reads the stacks of a process with a tool that uses ptrace(2). It uses no tool for a stopped
// process, which could start to run again, or for a process that waits in the kernel, because the tool would
// wait for it. It tries eu-stack first, because eu-stack stops a process for a shorter time than gdb.
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

// goOn makes a process continue that a failed tool may have stopped. The process must have been running before. goOn
// does not look whether the process is stopped, because the kernel stops a process some time after the signal. SIGCONT
// also cancels a stop that is about to happen, and does nothing to a process that is not stopped and that has no
// handler for SIGCONT.
func (p *proc) goOn() {
	if p.same() {
		_ = unix.Kill(p.pid, unix.SIGCONT)
	}
}

// refused returns why a tool gave no stack, and what the user can do.
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
