package stepserver

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/slurmjob"
)

// Args returns the arguments of the hidden command "step". The command starts a server for the client that has the
// given key. When the server has had no client for longer than the duration grace, it ends as soon as none of its
// descendants is left. If the node that runs the script of the job has failed by then, and if the job was started fewer
// than maxStarts times, the server first asks Slurm to requeue the job.
func Args(client ed25519.PublicKey, grace time.Duration, maxStarts int) []string {
	return []string{"step", base64.StdEncoding.EncodeToString(client), grace.String(), strconv.Itoa(maxStarts)}
}

// Main runs the hidden command "step KEY GRACE STARTS", and returns the exit code.
func Main(args []string) int {
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: step:", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("this command is for gangrun's own use")
	}
	key, err := base64.StdEncoding.DecodeString(args[0])
	if err != nil || len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("%q is no key", args[0])
	}
	grace, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	starts, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	// The batch system signals this process when it signals the job's script, and may signal it
	// earlier. The controller decides what the agents do. Signals are caught and not ignored:
	// agents would inherit that they are ignored.
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGXCPU)
	over := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { reportSignals(caught, over) })
	defer reporting.Wait()
	defer close(over)
	defer signal.Stop(caught)
	// Agents lose their parent. This process becomes their parent and reaps them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	o := &orphans{}
	s, report, err := newServer(key, grace, o.left)
	if err != nil {
		return err
	}
	s.started, s.ended = o.add, o.remove
	if _, err := fmt.Println(Mark + report.String()); err != nil {
		_ = s.listener.Close()
		return err
	}
	if err := s.serve(context.Background()); err != nil || s.asked() || starts == 0 {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	return requeueLost(ctx, starts)
}

// requeueLost makes Slurm requeue the job of this process if the node of the job's script is down. Without that, Slurm
// lets a job that was submitted with --no-kill run on without its script.
func requeueLost(ctx context.Context, starts int) error {
	j, err := slurmjob.Show(ctx, os.Getenv("SLURM_JOB_ID"))
	if err != nil || j.State != "RUNNING" || j.Restarts+1 >= starts {
		return err
	}
	for range nodeDownTries { // Slurm notices a dead node later than gangrun
		down, err := slurmjob.NodeDown(ctx, j.BatchHost)
		if err != nil {
			return err
		}
		if down {
			// A late answer of the node's slurmd can make Slurm use the node again, although it is down.
			return slurmjob.Requeue(ctx, j, []string{j.BatchHost})
		}
		select {
		case <-time.After(nodeDownEvery):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// Limits for the wait until Slurm notices that a node is down. Slurm takes as long as its SlurmdTimeout says, 300 s by
// default.
const (
	nodeDownEvery = 5 * time.Second
	nodeDownTries = 120
)

// orphans reaps the children of this process that this process has not started itself.
type orphans struct {
	mu  sync.Mutex
	own []int // PIDs of the children that sessions wait for
}

func (o *orphans) add(start func() (pid int, err error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	pid, err := start()
	if err == nil {
		o.own = append(o.own, pid)
	}
	return err
}

func (o *orphans) remove(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own = slices.DeleteFunc(o.own, func(p int) bool { return p == pid })
}

// left reaps the orphans that have ended. It reports whether other children are alive.
func (o *orphans) left() (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	alive := false
	for _, pid := range procfs.Children(os.Getpid()) {
		stat, err := procfs.ReadStat(pid)
		switch {
		case err != nil:
		case !stat.Ended():
			alive = true
		case !slices.Contains(o.own, pid):
			var status unix.WaitStatus
			_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
	}
	return alive, nil
}

// reportSignals prints each signal that this process receives, until over is closed.
func reportSignals(caught <-chan os.Signal, over <-chan struct{}) {
	for {
		select {
		case sig := <-caught:
			fmt.Printf("%s%s%d %s\n", Mark, signalMark, sig.(unix.Signal), nodeName())
		case <-over:
			return
		}
	}
}

// signalMark follows Mark in a line that reports a signal.
const signalMark = "signal "

// ParseSignal parses text, which is what follows Mark in a line of a server. ok is false if text does not report a
// signal.
func ParseSignal(text string) (node string, sig unix.Signal, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), signalMark)
	number, node, two := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	return node, unix.Signal(n), ok && two && err == nil && n > 0 && node != ""
}
