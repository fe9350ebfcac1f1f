// Package devices finds the GPUs of the host on which an agent runs.
package devices

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/machine"
	"github.com/gangrun/gangrun/topology/probe"
)

// Reader finds the GPUs of this host.
type Reader struct {
	Children *process.Children // starts the programs that ask the driver
	Hung     atomic.Bool       // gangrun-nvml did not answer in time on this host
}

// Read returns the host with its GPUs. findings says what is wrong with them. driven is true if the host has an
// NVIDIA driver. name is the name of the host. nvml is the path of gangrun-nvml, or empty. env is the
// environment of the ranks.
func (r *Reader) Read(ctx context.Context, name, nvml string, env []string) (h job.Host, findings []job.Finding, driven bool, err error) {
	h = job.Host{Name: name}
	findings = []job.Finding{{
		Check: probe.Check, Severity: job.SeverityNote,
		Text: "no NVIDIA driver: there is neither /dev/nvidiactl nor /proc/driver/nvidia, and nvidia-smi is not in PATH",
		Hint: "install the NVIDIA driver, or start the ranks without GPUs: --gpus-per-rank 0",
	}}
	driven = machine.Driven(environ.Lookup(env, "PATH"))
	if driven {
		lookup := func(name string) (string, bool) {
			i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
			return environ.Lookup(env, name), i >= 0
		}
		m, err := machine.Look(ctx, &h, os.DirFS("/sys"), lookup, probe.Options{Run: r.probe, NVML: nvml, Path: environ.Lookup(env, "PATH"), Hung: &r.Hung})
		var refused *machine.GrantError
		switch {
		case errors.As(err, &refused):
			h.Devices = nil
			findings = []job.Finding{{Check: probe.Check, Severity: job.SeverityError, Text: err.Error()}}
		case err != nil:
			return h, nil, driven, err
		default:
			findings = m.Findings
		}
	}
	for i := range findings {
		findings[i].Host = name
	}
	return h, findings, driven, nil
}

// maxProbe limits how many bytes of a probe's output are kept.
const maxProbe = 16 << 20

// probe implements probe.Runner. It starts programs through process.Children, because that reaps all children of the
// agent.
func (r *Reader) probe(ctx context.Context, limit time.Duration, path string, args ...string) (out probe.Output, err error) {
	null, err := process.DevNull()
	if err != nil {
		return out, err
	}
	defer null.Close()
	var pipes [2]*os.File // read ends
	var files = []*os.File{null}
	for i := range pipes {
		from, to, err := os.Pipe()
		if err != nil {
			return out, err
		}
		defer from.Close()
		defer to.Close()
		pipes[i], files = from, append(files, to)
	}
	ch, err := r.Children.Start(path, append([]string{path}, args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return out, err
	}
	out.PID = ch.PID
	_ = files[1].Close()
	_ = files[2].Close()
	var texts [2][]byte
	read := make(chan bool, len(pipes))
	for i, pipe := range pipes {
		go func() { // the goroutine ends with the pipe, or by the deadline of the pipe
			output := probe.Outlet(pipe)
			texts[i], _ = io.ReadAll(io.LimitReader(output, maxProbe+1))
			more, _ := io.Copy(io.Discard, output)
			read <- more > 0 || len(texts[i]) > maxProbe
		}()
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch.Exited:
	case <-timer.C:
		out.Hung = !ch.Ended() // the program may have ended, too, if this process was stopped meanwhile
	case <-ctx.Done():
	}
	if !ch.Ended() {
		r.Children.Signal(ch, unix.SIGKILL)
		select {
		case <-ch.Exited:
		case <-time.After(process.KillLimit):
			out.Stuck = true
		}
	}
	for _, pipe := range pipes { // processes that the program left behind may hold the pipes open
		_ = pipe.SetReadDeadline(time.Unix(1, 0)) // data that is in the pipe is still read
	}
	for range pipes {
		out.Cut = <-read || out.Cut
	}
	out.Stdout, out.Stderr = texts[0][:min(len(texts[0]), maxProbe)], texts[1][:min(len(texts[1]), maxProbe)]
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if !out.Stuck {
		out.Code = ch.Status.ExitStatus()
		if ch.Status.Signaled() {
			out.Signalled, out.Code = true, 128+int(ch.Status.Signal())
		}
	}
	return out, nil
}
