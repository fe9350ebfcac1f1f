package openmpi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// libraryOf returns the MPI library of the ranks' programs. It returns "" if the library is not known.
func libraryOf(ranks []*gang.Command) (library string) {
	for _, c := range ranks {
		if _, library = mpilib.Of(c.Path, c.Env); library != "" {
			break
		}
	}
	return library
}

// startMpirun starts mpirun with a shim for each rank of the gang. library is the MPI library of the ranks' programs.
func (w *Wireup) startMpirun(m *wire.Mpirun, library string) error {
	env := environ.Overlay(w.gang.Env, wire.Strings(m.Env))
	in, ok := openmpi.Find(library, env)
	if !ok || in.Mpirun == "" {
		return fmt.Errorf("mpirun of Open MPI is not on PATH nor beside %q: %w", library, os.ErrNotExist)
	}
	self, err := w.self()
	if err != nil {
		return err
	}
	plan := openmpi.Plan{
		Nodes: m.Nodes, Cores: runtime.NumCPU(), Interface: string(m.Interface), Agent: []string{self, "rsh"}, Shim: []string{self, "shim"},
		Tmpdir: w.dirs.tmp, Shm: w.dirs.shm,
	}
	for _, n := range m.Node {
		plan.Node = append(plan.Node, int(n))
	}
	for _, n := range m.Apps {
		plan.Apps = append(plan.Apps, int(n))
	}
	argv, set := plan.Command(in, env)
	env = environ.Overlay(env, set, openmpi.DaemonEnv(m.Nodes[0], w.dirs.tmp, w.dirs.shm), []string{w.listener.env()})
	mpirun, err := w.start(in.Mpirun, argv, env, nil)
	if err != nil {
		return fmt.Errorf("start mpirun: %w", err)
	}
	w.wg.Go(func() {
		<-mpirun.Exited
		w.mpirunEnded(mpirun)
	})
	return nil
}

// start starts mpirun or a daemon. The output of the process goes to the log. start closes stdin. If stdin is nil, the
// process reads /dev/null.
func (w *Wireup) start(path string, argv, env []string, stdin *os.File) (*process.Child, error) {
	if stdin == nil {
		null, err := process.DevNull()
		if err != nil {
			return nil, err
		}
		stdin = null
	}
	defer stdin.Close()
	file, err := w.log.open()
	if err != nil {
		return nil, err
	}
	r, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	child, err := w.gang.Children.Start(path, argv, &syscall.ProcAttr{
		Dir: string(w.gang.Start.Workdir), Env: env, Files: []uintptr{stdin.Fd(), out.Fd(), out.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = out.Close()
	if err != nil {
		return nil, errors.Join(err, file.Close(), r.Close())
	}
	w.processes.addRuntime(child)
	w.wg.Go(func() {
		// The goroutine ends with the last process that holds the pipe. All these processes are killed before the end
		// of the gang.
		defer r.Close()
		defer file.Close()
		w.log.copy(r, file)
	})
	return child, nil
}

// mpirunEnded asks for the end of the gang if mpirun has ended without starting all ranks.
func (w *Wireup) mpirunEnded(mpirun *process.Child) {
	asked := w.daemons.forget() // the daemons for which the rsh agents wait will not be started
	missing := w.takeWaiting()
	if len(missing) == 0 && asked >= len(w.gang.Start.Mpirun.Nodes)-1 {
		w.runtimeEnded(mpirun)
		return
	}
	text := fmt.Sprintf("mpirun ended with code %d before every rank was there; what it said is in %s beside the ranks' logs", mpirun.Status.ExitStatus(), filepath.Base(w.log.Path))
	if mpirun.Status.Signaled() {
		text = fmt.Sprintf("mpirun was ended by %s before every rank was there", job.SignalName(int(mpirun.Status.Signal())))
	}
	if len(missing) == 0 {
		w.gang.RequestStopFor(-1, job.ReasonNone, text)
		return
	}
	w.gang.Reports.Lines(job.Line{Source: job.SourceAgent, Host: w.gang.Host, Rank: -1, Time: hostclock.Now(), Text: text})
	w.gang.Abandon(missing, text, 0, false)
}
