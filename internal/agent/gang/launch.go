package gang

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/affinity"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// launchBatch is how many ranks are started before gangrun looks at their output and exits. Until then, each rank needs
// nine descriptors. Later it needs five.
const launchBatch = 16

// launch is the start of a gang's ranks.
type launch struct {
	*Gang
	stdout  output.Opener
	pattern *curve.Pattern    // matches the lines that are progress; nil means the forms that gangrun knows
	paths   map[string]string // the paths of programs that were found, by their names
}

// start starts the ranks in order, or makes the runtime start them. It stops at the first rank that cannot be started.
func (g *Gang) start() {
	defer close(g.ready)
	l := launch{Gang: g, stdout: g.stdout(output.OpenPTY), paths: map[string]string{}}
	err := l.makeCheckpointDir()
	if pattern := string(g.Start.Progress); pattern != "" && err == nil {
		l.pattern, err = curve.NewPattern(pattern)
	}
	if err == nil && g.runtime != nil {
		err = l.byRuntime()
	} else if err == nil {
		err = l.byFork()
	}
	if err == nil {
		return
	}
	for i, want := range g.Start.Ranks[g.living.count():] {
		exit := job.Exit{Rank: int(want.Rank), Host: g.Host, Status: job.Unstarted, Stopped: true, Text: "another rank could not be started"}
		if i == 0 {
			exit = unstarted(want, g.Host, err)
		}
		exit.Time = hostclock.Now()
		g.Reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
	}
}

func (l *launch) makeCheckpointDir() error {
	dir := string(l.Start.CheckpointDir)
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the checkpoint directory: %w", err)
	}
	return nil
}

// prepare makes a rank's log files and pipes, and finds its program. If prepare returns an error, the command is nil,
// or the caller must close the files of the command.
func (l *launch) prepare(want *wire.RankStart) (*Command, error) {
	number := int(want.Rank)
	found := &progress.Rank{Steps: int(l.Start.Steps), Emit: func(p job.Progress) {
		l.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindProgress, Rank: number, Host: l.Host, Progress: &p})
	}}
	options := func() output.Options {
		scanner := &progress.Scanner{Rank: found, Pattern: l.pattern}
		return output.Options{Spooled: l.Spooled, Grew: &l.grew, Seen: scanner.Scan, Stuck: l.logStuck, End: found.Flush}
	}
	r, files, err := newRank(number, string(l.Start.LogDir), want.Stdin, l.stdout, options)
	if err != nil {
		return nil, err
	}
	r.progress = found
	c := &Command{
		Rank: r, Local: len(l.ranks), Files: files, Argv: wire.Strings(want.Argv), Want: wire.Strings(want.Env), CPUs: want.Cpus,
		Dir: string(l.Start.Workdir), Env: environ.Overlay(l.Env, wire.Strings(want.Env)),
	}
	l.ranks = append(l.ranks, r)
	for _, hint := range wire.Strings(want.Hints) {
		if name, _, _ := strings.Cut(hint, "="); environ.Lookup(c.Env, name) == "" {
			c.hint(hint)
		}
	}
	if err := c.offerErrorFile(string(l.Start.LogDir)); err != nil {
		return c, err
	}
	if err := c.offerFaulthandler(l.Start); err != nil {
		return c, err
	}
	if dir := string(want.Workdir); dir != "" {
		c.Dir = dir
	}
	if err := c.offerFlightRecorder(l.Start); err != nil {
		return c, err
	}
	if err := c.find(l.paths); err != nil {
		return c, err
	}
	if err := l.wireup.Equip(c); err != nil {
		return c, err
	}
	return c, c.offerBeats(string(l.Start.LogDir))
}

// byRuntime makes the runtime start the ranks. From this moment, all of them count as living.
func (l *launch) byRuntime() (err error) {
	var commands []*Command
	for _, want := range l.Start.Ranks {
		c, failed := l.prepare(want)
		if c != nil {
			commands = append(commands, c)
		}
		if err = failed; err != nil {
			break
		}
	}
	if err == nil {
		l.living.add(len(commands))
		if err = l.runtime.Launch(commands); err == nil {
			return nil
		}
		l.living.add(-len(commands))
	}
	for _, c := range commands {
		c.pump(l.Gang)
	}
	return err
}

// byFork starts the ranks as children of this process.
func (l *launch) byFork() error {
	for batch := range slices.Chunk(l.Start.Ranks, launchBatch) {
		if err := l.forkBatch(batch); err != nil {
			return err
		}
	}
	return nil
}

// forkBatch starts ranks until one cannot be started. It prepares all of them, and then forks them. Only after that, it
// looks at their output and exits.
func (l *launch) forkBatch(wants []*wire.RankStart) (err error) {
	var batch []*Command
	able := 0 // number of ranks in the batch that can be started
	for _, want := range wants {
		c, failed := l.prepare(want)
		if c != nil {
			batch = append(batch, c)
		}
		if err = failed; err != nil {
			break
		}
		able++
	}
	forked := l.Children.Batch(func(fork process.Starter) {
		for _, c := range batch[:able] {
			var forkErr error
			affinity.Bound(c.CPUs, func() { forkErr = l.fork(fork, c) })
			if forkErr != nil {
				err = forkErr
				break
			}
		}
	})
	if !forked {
		err = errors.New("the agent is ending")
	}
	for _, c := range batch {
		c.pump(l.Gang)
		if c.Rank.child.Load() != nil {
			l.living.add(1)
			l.watch(c.Rank)
		}
	}
	if err != nil {
		// The kernel returns the same error for a directory that cannot be entered.
		if dirErr := process.Enterable(string(l.Start.Workdir)); dirErr != nil {
			return workdirError{fmt.Errorf("the working directory %q cannot be entered: %w", l.Start.Workdir, dirErr)}
		}
	}
	return err
}

// fork executes a rank's program as a child of this process.
func (l *launch) fork(start process.Starter, c *Command) error {
	attr := syscall.ProcAttr{Dir: c.Dir, Env: c.Env}
	for _, f := range c.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	// Each rank has its own process group, but not its own session. If the kernel shares the CPU by sessions
	// (autogroup, see sched(7)), ranks that wait for each other are faster in one session: by a tenth for 8 to 32 ranks
	// on two cores.
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	child, err := l.Group.Start(start, c.Path, c.Argv, &attr)
	if err != nil {
		return &os.PathError{Op: "execute", Path: c.Path, Err: err}
	}
	c.Rank.child.Store(child)
	return nil
}
