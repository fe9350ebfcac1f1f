package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// startMpirun starts mpirun with a shim for each rank of the gang.
func (o *openMPI) startMpirun(m *wire.Mpirun) error {
	g := o.g
	env := environ.Overlay(g.env, texts(m.Env))
	in, ok := openmpi.Find(o.library, env)
	if !ok || in.Mpirun == "" {
		return fmt.Errorf("mpirun of Open MPI is not on PATH nor beside %q: %w", o.library, os.ErrNotExist)
	}
	cores, _ := capacity()
	self, err := o.self()
	if err != nil {
		return err
	}
	plan := openmpi.Plan{
		Nodes: m.Nodes, Cores: cores, Interface: string(m.Interface), Agent: []string{self, "rsh"}, Shim: []string{self, "shim"},
		Tmpdir: o.tmpdir, Shm: o.shm,
	}
	for _, n := range m.Node {
		plan.Node = append(plan.Node, int(n))
	}
	for _, n := range m.Apps {
		plan.Apps = append(plan.Apps, int(n))
	}
	argv, set := plan.Command(in, env)
	env = environ.Overlay(env, set, openmpi.DaemonEnv(m.Nodes[0], o.tmpdir, o.shm), []string{o.front.env()})
	o.mpirun, err = o.runtime(in.Mpirun, argv, env, nil, true)
	if err != nil {
		return fmt.Errorf("start mpirun: %w", err)
	}
	o.wg.Go(func() {
		<-o.mpirun.Exited
		o.post(o.mpirunEnded)
	})
	return nil
}

// runtime starts mpirun or a daemon. What it says goes to a log file; with hear
// it is listened to.
func (o *openMPI) runtime(path string, argv, env []string, stdin *os.File, hear bool) (*process.Child, error) {
	if stdin != nil {
		defer stdin.Close()
	}
	log, err := safefile.OpenFile(o.words.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if o.words.Spooled {
		_ = log.Chmod(0o600) // as of a rank's
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if stdin == nil {
		if stdin, err = process.DevNull(); err != nil {
			return nil, errors.Join(err, log.Close(), r.Close(), w.Close())
		}
		defer stdin.Close()
	}
	ch, err := o.g.children.Start(path, argv, &syscall.ProcAttr{
		Dir: string(o.g.start.Workdir), Env: env, Files: []uintptr{stdin.Fd(), w.Fd(), w.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = w.Close()
	if err != nil {
		return nil, errors.Join(err, log.Close(), r.Close())
	}
	o.wg.Go(func() {
		// Ends with the last process that holds the pipe: all are killed before
		// the gang's end.
		defer r.Close()
		defer log.Close()
		buffer := make([]byte, 8<<10)
		number := 0
		var rest string
		for {
			n, err := r.Read(buffer)
			stored, _ := log.Write(buffer[:n]) // a full disk must not hold up mpirun
			o.words.Grow(stored)
			if hear && n > 0 && number < mostLines { // the file has it all
				lines := strings.SplitAfter(rest+string(buffer[:n]), "\n")
				rest = lines[len(lines)-1]
				rest = rest[:min(len(rest), cap(buffer))]
				for _, line := range lines[:len(lines)-1] {
					number++
					o.g.reports.Lines(o.line(log.Name(), number, line))
				}
			}
			if err != nil {
				return
			}
		}
	})
	return ch, nil
}

// mostLines bounds how much of what mpirun says is evidence.
const mostLines = 500

// line is what mpirun said, as evidence.
func (o *openMPI) line(file string, number int, text string) job.Line {
	return job.Line{Source: job.SourceStderr, Host: o.g.host, Rank: -1, File: file, Line: number, Time: hostclock.Now(), Text: output.Clean([]byte(text))}
}

// mpirunEnded ends the gang when ranks are missing that nobody will start now.
func (o *openMPI) mpirunEnded() {
	for id, conn := range o.asking { // nobody asks any more
		_ = conn.Close()
		delete(o.asking, id)
	}
	if len(o.waiting) == 0 && !o.lacking() {
		o.daemonLost()
		return
	}
	text := fmt.Sprintf("mpirun ended with code %d before every rank was there; what it said is in %s beside the ranks' logs", o.mpirun.Status.ExitStatus(), filepath.Base(o.words.Path))
	if o.mpirun.Status.Signaled() {
		text = fmt.Sprintf("mpirun was ended by %s before every rank was there", job.SignalName(int(o.mpirun.Status.Signal())))
	}
	o.g.reports.Lines(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: hostclock.Now(), Text: text})
	if !o.abandon(o.missing(), text, 0, false) {
		o.g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStop, Host: o.g.host, Text: text})
	}
}

// lacking reports whether the other hosts' daemons were never all started.
func (o *openMPI) lacking() bool {
	return o.g.start.Mpirun != nil && o.asked < len(o.g.start.Mpirun.Nodes)-1
}
