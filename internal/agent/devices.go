package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/topology/machine"
	"github.com/gangrun/gangrun/topology/probe"
)

// Devices implements wire.AgentServer.
func (s *server) Devices(ctx context.Context, r *wire.DevicesRequest) (*wire.DevicesReply, error) {
	name, env := s.settings.get()
	h := job.Host{Name: name}
	findings := []job.Finding{{
		Check: probe.Check, Severity: job.SeverityNote,
		Text: "no NVIDIA driver: there is neither /dev/nvidiactl nor /proc/driver/nvidia, and nvidia-smi is not in PATH",
		Hint: "install the NVIDIA driver, or start the ranks without GPUs: --gpus-per-rank 0",
	}}
	driven := machine.Driven(environ.Lookup(env, "PATH"))
	if driven {
		lookup := func(name string) (string, bool) {
			i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
			return environ.Lookup(env, name), i >= 0
		}
		m, err := machine.Look(ctx, &h, os.DirFS("/sys"), lookup, probe.Options{Run: prober{s.children}.probe, NVML: string(r.Nvml), Path: environ.Lookup(env, "PATH"), Hung: &s.hung})
		var refused *machine.GrantError
		switch {
		case errors.As(err, &refused):
			h.Devices = nil
			findings = []job.Finding{{Check: probe.Check, Severity: job.SeverityError, Text: err.Error()}}
		case err != nil:
			return nil, err
		default:
			findings = m.Findings
		}
	}
	for i := range findings {
		findings[i].Host = name
	}
	host, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(findings)
	return &wire.DevicesReply{Host: host, Findings: told, Driven: driven}, err
}

// maxProbe bounds what a child that tells of GPUs may print, in bytes.
const maxProbe = 16 << 20

// prober starts probes of GPUs: the agent reaps every child of its own.
type prober struct{ *process.Children }

// probe implements probe.Runner.
func (c prober) probe(ctx context.Context, limit time.Duration, path string, args ...string) (out probe.Output, err error) {
	null, err := process.DevNull()
	if err != nil {
		return out, err
	}
	defer null.Close()
	var pipes [2]*os.File // read ends
	var files = []*os.File{null}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			return out, err
		}
		defer r.Close()
		defer w.Close()
		pipes[i], files = r, append(files, w)
	}
	ch, err := c.Start(path, append([]string{path}, args...), &syscall.ProcAttr{
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
	for i, r := range pipes {
		go func() { // ends with the pipe, or by its deadline
			said := probe.Outlet(r)
			texts[i], _ = io.ReadAll(io.LimitReader(said, maxProbe+1))
			more, _ := io.Copy(io.Discard, said)
			read <- more > 0 || len(texts[i]) > maxProbe
		}()
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch.Exited:
	case <-timer.C:
		out.Hung = !ch.Ended() // both may be so after the machine stood still
	case <-ctx.Done():
	}
	if !ch.Ended() {
		c.Signal(ch, unix.SIGKILL)
		select {
		case <-ch.Exited:
		case <-time.After(process.KillLimit):
			out.Stuck = true
		}
	}
	for _, r := range pipes { // what it left behind may hold them
		_ = r.SetReadDeadline(time.Unix(1, 0)) // once what is in there has been read
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
