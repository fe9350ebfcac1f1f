package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/affinity"
	"github.com/gangrun/gangrun/internal/agent/errorfile"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// launchBatch is how many ranks are started in a row, before their output and
// exits are looked at. Each holds seven descriptors until then, four afterwards.
const launchBatch = 16

// prepared is a rank whose log files and pipes are there, ready to be started.
type prepared struct {
	rank    *rank
	streams []*os.File // of the rank's process
	path    string
	argv    []string
	attr    syscall.ProcAttr
	hints   []string // those of its environment that nothing else sets
	cpus    string
	err     error // why it cannot be started
}

// prepare makes a rank's log files and pipes and finds its program.
func (g *gang) prepare(want *wire.RankStart, paths map[string]program) prepared {
	number := int(want.Rank)
	found := &progress.Rank{Steps: int(g.start.Steps), Emit: func(p job.Progress) {
		g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindProgress, Rank: number, Host: g.host, Progress: &p})
	}}
	options := func() output.Options {
		scanner := &progress.Scanner{Rank: found}
		return output.Options{Spooled: g.spooled, Grew: &g.bell, Seen: scanner.Scan, Stuck: g.logStuck, End: found.Flush}
	}
	r, streams, err := newRank(number, string(g.start.LogDir), want.Stdin, g.stdout(output.OpenPTY), options)
	if err != nil {
		return prepared{err: err}
	}
	r.progress = found
	p := prepared{rank: r, streams: streams, argv: texts(want.Argv), cpus: want.Cpus}
	p.attr = syscall.ProcAttr{Dir: string(g.start.Workdir), Env: environ.Overlay(g.env, texts(want.Env))}
	for _, hint := range texts(want.Hints) {
		if name, _, _ := strings.Cut(hint, "="); environ.Lookup(p.attr.Env, name) == "" {
			p.hint(hint)
		}
	}
	if p.err = g.offerErrorFile(&p); p.err != nil {
		return p
	}
	if dir := string(want.Workdir); dir != "" {
		p.attr.Dir = dir
	}
	program, ok := paths[p.argv[0]]
	if !ok {
		program.path, p.err = process.LookPath(p.argv[0], p.attr.Dir, p.attr.Env)
		if p.err == nil && g.wiring != nil {
			mpi, _ := mpilib.Of(program.path, p.attr.Env)
			program.direct = mpi == job.MPIMPICH
		}
		if p.err == nil && strings.Contains(p.argv[0], "/") == filepath.IsAbs(p.argv[0]) {
			paths[p.argv[0]] = program // what is relative hangs on the directory
		}
	}
	p.path = program.path
	if p.err == nil && g.wiring != nil {
		p.err = g.equip(&p, program.direct)
	}
	return p
}

// hint sets a variable that nothing else sets.
func (p *prepared) hint(entry string) {
	p.attr.Env = append(p.attr.Env, entry)
	p.hints = append(p.hints, entry)
}

// program is where a program was found; direct says that it speaks PMI itself.
type program struct {
	path   string
	direct bool
}

// equip gives a rank its PMI connection.
func (g *gang) equip(p *prepared, direct bool) error {
	env, file, err := g.wiring.equip(p.rank.number, len(g.ranks), direct)
	if err != nil {
		return err
	}
	p.attr.Env = environ.Overlay(p.attr.Env, env)
	if file != nil {
		p.streams = append(p.streams, file)
	}
	return nil
}

// launch starts the ranks in order; the first that cannot be started ends it.
func (g *gang) launch() {
	defer close(g.ready)
	var err error
	switch job.MPI(g.start.Mpi) {
	case job.MPIMPICH:
		g.wiring = newWiring(g.start, g.reports)
		g.meeting = g.wiring
	case job.MPIOpenMPI:
		g.ompi, err = newOpenMPI(g)
		g.meeting = g.ompi
	}
	if dir := string(g.start.CheckpointDir); dir != "" && err == nil {
		if err = os.MkdirAll(dir, 0o777); err != nil {
			err = fmt.Errorf("make the checkpoint directory: %w", err)
		}
	}
	paths := map[string]program{} // that have been found
	if err == nil && g.ompi != nil {
		if err = g.ompi.launch(); err == nil {
			return
		}
		g.ompi.giveUp()
	}
	for batch := range slices.Chunk(g.start.Ranks, launchBatch) {
		if err == nil {
			err = g.startBatch(batch, paths)
		}
	}
	if err == nil {
		return
	}
	for i, want := range g.start.Ranks[g.alive:] {
		exit := job.Exit{Rank: int(want.Rank), Host: g.host, Status: job.Unstarted, Time: hostclock.Now(), Stopped: true, Text: "another rank could not be started"}
		if i == 0 {
			exit.Stopped, exit.Text, exit.Code = false, describe(want, err), startCode(err)
			if errors.As(err, new(workdirError)) || errors.As(err, new(output.PTYError)) {
				exit.Code = 0 // the program was not looked for
			}
		}
		g.reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
	}
}

// workdirError is that no rank can be started for want of the working directory.
type workdirError struct{ error }

// startBatch starts ranks up to the first failure: it prepares them, forks them
// in a row, and only then follows what they do.
func (g *gang) startBatch(wants []*wire.RankStart, paths map[string]program) (err error) {
	var batch []prepared
	for _, want := range wants {
		p := g.prepare(want, paths)
		if p.rank != nil {
			batch = append(batch, p)
			g.ranks = append(g.ranks, p.rank)
		}
		if err = p.err; err != nil {
			break
		}
	}
	forked := g.children.Batch(func(fork process.Starter) {
		for _, p := range batch {
			if p.err != nil {
				break
			}
			var forkErr error
			affinity.Bound(p.cpus, func() { forkErr = p.rank.fork(fork, g.group, p.path, p.argv, &p.attr, p.streams) })
			if forkErr != nil {
				err = forkErr
				break
			}
		}
	})
	if !forked {
		err = errors.New("the agent is ending")
	}
	for _, p := range batch {
		r := p.rank
		r.pump(p.streams, g.release)
		if r.child == nil {
			continue
		}
		g.alive++
		g.watch(r)
	}
	if err != nil {
		// The kernel says the same of a directory that cannot be entered.
		if dirErr := process.Enterable(string(g.start.Workdir)); dirErr != nil {
			return workdirError{fmt.Errorf("the working directory %q cannot be entered: %w", g.start.Workdir, dirErr)}
		}
	}
	return err
}

// watch tells of the start of a rank, and sees to its end.
func (g *gang) watch(r *rank) {
	g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStarted, Rank: r.number, Host: g.host, PID: r.child.PID})
	g.waiting.Go(func() {
		<-r.child.Exited
		if r.child.Status != 0 {
			output.Drain(r.out, r.err)
		} else if g.wiring != nil {
			g.wiring.settle(r.number, g.release)
		}
		g.exits <- r
	})
}

// wanted is the environment that a rank is to have over the gang's.
func (g *gang) wanted(number int) [][]byte {
	i := slices.IndexFunc(g.start.Ranks, func(r *wire.RankStart) bool { return int(r.Rank) == number })
	return g.start.Ranks[i].Env
}

// texts turns what has travelled into what the kernel is given.
func texts(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, t := range raw {
		out[i] = string(t)
	}
	return out
}

// offerErrorFile gives a rank an error file beside its logs, unless its environment
// names one already: that is the user's, and is not read.
func (g *gang) offerErrorFile(p *prepared) error {
	if environ.Lookup(p.attr.Env, errorfile.Env) != "" {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(string(g.start.LogDir), job.LogName(p.rank.number, "error.json")))
	if err != nil {
		return err
	}
	p.rank.errorFile = path
	p.hint(errorfile.Env + "=" + path)
	return nil
}
