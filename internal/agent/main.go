package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// endLimit limits the time in which an agent ends after its controller is gone. It is longer than the time that the
// agent's ranks may take. It is so short that nothing is left after 3 s.
const endLimit = gang.StrayGrace + 500*time.Millisecond

// Main is the hidden command "gangrun agent HOST". It runs as three processes, one below the other: the outer
// watchdog, the inner watchdog, and the agent, which serves its controller on the descriptor watchdog.ConnFD.
// The host's name is only for people who read the output of ps. Main returns the exit code.
func Main(args []string) int {
	var code int
	var err error
	if len(args) == 2 && args[1] == watchdog.Worker {
		// Ranks must not inherit descriptors that the process which started gangrun had open.
		_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
		if code, err = work(); err != nil {
			code = 70
		}
	} else {
		var end watchdog.End
		if end, err = watchdog.Wait(args); err != nil {
			code = 70
		} else {
			code, err = cleanUp(end)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: agent:", err)
	}
	return code
}

// work serves the controller until its connection ends, the watchdog dies, or a signal arrives. When work returns,
// every process below this one is gone.
func work() (code int, err error) {
	unix.CloseOnExec(watchdog.ConnFD)
	unix.CloseOnExec(watchdog.LifelineFD)
	unix.CloseOnExec(watchdog.AliveFD)
	unix.CloseOnExec(watchdog.KeepFD)
	keeper, err := watchdog.NewKeeper(os.NewFile(watchdog.KeepFD, "watchdog"))
	if err != nil {
		return 0, errors.Join(err, errors.New("this command is for gangrun's own use"))
	}
	file := os.NewFile(watchdog.ConnFD, "controller")
	line, err := newLink(file)
	_ = file.Close()
	if err != nil {
		return 0, err
	}
	children, err := process.NewChildren()
	if err != nil {
		return 0, err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer cancel()
	go func() {
		// The goroutine ends with the process, because nobody writes to the pipe.
		_, _ = os.NewFile(watchdog.AliveFD, "watchdog").Read(make([]byte, 1))
		cancel()
	}()
	group := cgroup.New(os.Getpid())
	s := newServer(children, group, line)
	s.leases.keeper = keeper
	go func() {
		<-s.life.Done()
		// If a file system hangs, a survey may never return. That must not keep the ranks or this process alive.
		notify.Wait(nil, endLimit)
		children.KillAll(group) // the watchdog may be gone
		group.Close()
		cleaned := make(chan struct{})
		go func() { // removing a directory may hang, too
			defer close(cleaned)
			_ = s.settings.cleanTmpdir()
		}()
		notify.Wait(cleaned, endLimit)
		os.Exit(1)
	}()
	line.serve(ctx)
	err = s.serve(ctx)
	killed := ctx.Err() != nil
	s.retire()
	children.KillAll(group)
	err = errors.Join(err, s.leases.close()) // no process uses the GPUs any more
	group.Close()
	children.Close()
	orphaned := line.close(cancel)
	if line.dir != "" && !((killed || orphaned || line.keep.Load()) && bridge.Spooled(line.dir)) {
		err = errors.Join(err, os.RemoveAll(line.dir))
	}
	err = errors.Join(err, s.settings.cleanTmpdir())
	if s.boxes.Load() {
		code = watchdog.Unswept
	}
	return code, err
}
