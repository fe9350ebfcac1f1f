package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/namedfile"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology/inventory"
)

func mpiexecCommand() *cli.Command {
	return &cli.Command{
		Name:            "mpiexec",
		Usage:           "run programs as mpiexec or mpirun would, with their options",
		ArgsUsage:       "[-n N] [OPTIONS] PROGRAM [ARGUMENTS] [: -n M [OPTIONS] PROGRAM2 [ARGUMENTS2]]...",
		SkipFlagParsing: true,
		Description: "There is no preflight and no retry, and of a run that ends well gangrun says nothing. The\n" +
			"ranks' standard output and standard error are kept apart, and are theirs alone.\n" +
			"   -n N, -np N              ranks of this program\n" +
			"   -ppn N                   ranks that each host takes in its turn\n" +
			"   -hosts A,B:2  -f FILE    hosts, in the order of their turns\n" +
			"   -loopback H              pretend that this machine is the hosts h1 to hH\n" +
			"   -genv K V  -env K V      set a variable for all programs, or for this one\n" +
			"   -x K=V  --mca K V        the same, as Open MPI writes it\n" +
			"   -genvnone -genvlist A,B  hand on no environment, or these variables alone\n" +
			"   -wdir DIR                start this program in DIR\n" +
			"   -l                       show the rank before each line\n" +
			"   -s RANK                  who gets standard input: a rank (0), all or none\n" +
			"   -usize N                 universe size: a number, SYSTEM or INFINITE\n" +
			"   -t SECONDS               end the run after so long, as MPIEXEC_TIMEOUT does\n" +
			"   --mpi MPI                auto, mpich, openmpi or none\n" +
			"   -v                       tell how the run goes, and which options change nothing\n" +
			"docs/mpiexec.md has the others.",
		Action: func(c *cli.Context) error {
			args, err := parseMpiexec(c.Args().Slice(), os.LookupEnv, func(path string) ([]byte, error) { return namedfile.ReadBounded(path, inventory.MaxSize) })
			switch {
			case err != nil:
				return err
			case args.help:
				cli.HelpPrinter(c.App.Writer, cli.CommandHelpTemplate, c.Command)
				return nil
			case args.version:
				cli.VersionPrinter(c)
				return nil
			}
			return runMpiexec(args, c.App.ErrWriter)
		},
	}
}

// runMpiexec runs the programs to their end.
func runMpiexec(args mpiexecArgs, stderr io.Writer) error {
	own := args.here(thishost.New())
	turns, err := args.turns(own)
	if err != nil {
		return err
	}
	cwd, err := workingDir(args.relative(), "-wdir")
	if err != nil {
		return err
	}
	spec := args.spec(cwd)
	if spec.Hosts, err = args.others(own); err != nil {
		return err
	}
	if err := spec.Validate(); err != nil {
		return &failure.Error{Code: failure.CodeUsage, Err: err, Fallback: "gangrun mpiexec --help lists the options"}
	}
	if args.bare {
		keep := args.keep
		if spec.Hosts != "" { // it is for the way there, and goes to no other host
			keep = append(slices.Clone(keep), "SSH_AUTH_SOCK")
		}
		if err := bareEnviron(keep); err != nil {
			return err
		}
	}
	if args.verbose {
		for _, option := range args.ignored {
			fmt.Fprintf(stderr, "gangrun: note: %s changes nothing here\n", option)
		}
	}
	s, err := openSession(spec, terms{plain: !args.prefix, terse: !args.verbose, universe: args.universe, mpiexec: true})
	if err != nil {
		return err
	}
	return s.conclude(s.toEnd(turnTaker{session: s, turns: turns}))
}

// spec is the job that the arguments ask for, started from a directory.
func (a mpiexecArgs) spec(cwd string) job.Spec {
	spec := job.Default()
	spec.Command, spec.Ranks, spec.Loopback, spec.Env = a.apps[0].Command, a.ranks(), a.loopback, maps.Clone(a.env)
	spec.Workdir, spec.Timeout, spec.MPI, spec.Stdin = cwd, job.Duration(a.timeout), a.mpi, a.stdin
	spec.Preflight, spec.Retries, spec.Output = job.PreflightOff, 0, job.OutputAll
	spec.GPUs = 0 // mpiexec knows of none
	apps := slices.Clone(a.apps)
	for i := range apps {
		if dir := apps[i].Workdir; dir != "" && !filepath.IsAbs(dir) {
			apps[i].Workdir = filepath.Join(cwd, dir)
		}
	}
	if len(apps) > 1 {
		spec.Apps = apps
		return spec
	}
	maps.Copy(spec.Env, apps[0].Env)
	if apps[0].Workdir != "" {
		spec.Workdir = apps[0].Workdir
	}
	return spec
}

// relative reports whether a program's directory depends on the working directory.
func (a mpiexecArgs) relative() bool {
	return slices.ContainsFunc(a.apps, func(app job.App) bool { return !filepath.IsAbs(app.Workdir) })
}

// bareEnviron takes everything from this process's environment, which the ranks
// inherit, but what is to be kept, PATH and the runs' home.
func bareEnviron(keep []string) error {
	dir, err := homeDir()
	if err != nil {
		return err
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "PATH" && !slices.Contains(keep, name) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return os.Setenv("GANGRUN_HOME", dir)
}

// turn is a host and how many ranks it takes before the next one does.
type turn struct {
	host  string
	ranks int
}

// turns are the hosts in the order in which they take ranks; none leaves the
// placement to gangrun.
func (a mpiexecArgs) turns(own ownHost) ([]turn, error) {
	var turns []turn
	for _, h := range a.hosts {
		switch {
		case a.loopback == 0 && own.is(h.name):
			turns = append(turns, turn{own.name, a.turn(h)})
		case a.loopback > 0 && !slices.Contains(loopbackHosts(a.loopback), h.name):
			return nil, failure.Usage(fmt.Sprintf("with -loopback %d the hosts are h1 to h%d", a.loopback, a.loopback), "mpiexec: there is no pretended host %q", h.name)
		default:
			turns = append(turns, turn{h.host(), a.turn(h)})
		}
	}
	if len(turns) == 0 && a.perHost > 0 {
		for _, name := range loopbackHosts(a.loopback) {
			turns = append(turns, turn{name, a.perHost})
		}
	}
	return turns, nil
}

// others is the list of hosts for a Spec, each once, with the ranks of its turns; ""
// where it would be this machine anyway, or is pretended.
func (a mpiexecArgs) others(own ownHost) (string, error) {
	here := !slices.ContainsFunc(a.hosts, func(h mpiexecHost) bool { return !own.is(h.name) })
	if a.loopback > 0 || len(a.hosts) == 0 || here && !a.allocated {
		return "", nil
	}
	var names []string
	slots := map[string]int{}
	for _, h := range a.hosts {
		if own.is(h.name) {
			h.name = own.name
		}
		if _, known := slots[h.name]; !known {
			names = append(names, h.name)
		}
		slots[h.name] = min(slots[h.name]+a.turn(h), job.MaxRanks)
	}
	var words []string
	for _, name := range names {
		host := mpiexecHost{name: name}.host()
		user, word := strings.TrimSuffix(name, host), host
		if strings.Contains(host, ":") {
			word = "[" + host + "]"
		}
		words = append(words, fmt.Sprintf("%s%s:%d", user, word, slots[name]))
	}
	text := strings.Join(words, ",")
	list, err := inventory.Hosts(text)
	if err == nil && len(list.Hosts) == len(names) && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(list.Hosts, func(h job.Host) bool { return h.Name == mpiexecHost{name: name}.host() })
	}) {
		return text, nil
	}
	return "", failure.Usage("write names or addresses, each host in one way alone", "mpiexec: not all of %q are hosts", names)
}

// ownHost is this machine, as mpiexec's hosts have it.
type ownHost struct {
	name string // under which its ranks are placed
	is   func(name string) bool
}

// here tells which of the hosts are this machine.
func (a mpiexecArgs) here(s thishost.Matcher) ownHost {
	if a.loopback > 0 || len(a.hosts) == 0 {
		return ownHost{thishost.Name(), func(string) bool { return false }}
	}
	var hosts []job.Host
	for _, h := range a.hosts {
		hosts = append(hosts, job.Host{Name: h.name, Address: h.name})
	}
	own := s.Among(context.Background(), hosts)
	return ownHost{s.Called(context.Background()), func(name string) bool { return own[name] }}
}

// turnTaker places ranks as mpiexec does: each host takes as many as its turn
// allows, and after the last host the first has its next turn.
type turnTaker struct {
	*session
	turns []turn
}

// Place implements supervisor.Placer.
func (t turnTaker) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (supervisor.Lease, error) {
	if len(t.turns) == 0 {
		return t.session.Place(ctx, spec, not, emit)
	}
	there, err := t.probed.inventory(ctx)
	if err != nil {
		return supervisor.Lease{}, err
	}
	t.probed.absent(emit)
	turns := slices.Clone(t.turns)
	placed := 0
	for i, turn := range turns {
		if placed >= spec.Ranks {
			turns = turns[:i] // the others need not be there
			break
		}
		placed += turn.ranks
		at := slices.IndexFunc(there.Hosts, func(h job.Host) bool { return h.Name == turn.host })
		if at < 0 && (turn.host == thishost.Name() || turn.host == thishost.Localhost) {
			at = slices.IndexFunc(there.Hosts, func(h job.Host) bool { return t.here(h.Name) })
		}
		if at < 0 {
			return supervisor.Lease{}, t.probed.without(supervisor.NoPlacement{Text: fmt.Sprintf("host %q cannot be used", turn.host), Hint: "leave it out", Never: true})
		}
		turns[i].host = there.Hosts[at].Name
	}
	placement := deal(spec.Ranks, turns, there.Hosts)
	var why job.Explanation
	for _, h := range placement.Hosts {
		why.Why = append(why.Why, fmt.Sprintf("host %s takes %d of %d ranks, in the order of the hosts", h.Name, len(placement.On(h.Name)), spec.Ranks))
	}
	return supervisor.Lease{Placement: placement, Explanation: why, Held: context.Background(), Release: func() {}}, nil
}

// deal gives ranks to hosts, turn by turn. Every turn's host must be among
// those that there are, and take at least one rank.
func deal(ranks int, turns []turn, hosts []job.Host) job.Placement {
	var p job.Placement
	nodes, sizes := map[string]int{}, map[string]int{}
	for i := 0; len(p.Ranks) < ranks; i++ {
		t := turns[i%len(turns)]
		if _, known := nodes[t.host]; !known {
			nodes[t.host] = len(p.Hosts)
			p.Hosts = append(p.Hosts, hosts[slices.IndexFunc(hosts, func(h job.Host) bool { return h.Name == t.host })])
		}
		for range min(t.ranks, ranks-len(p.Ranks)) {
			p.Ranks = append(p.Ranks, job.Rank{Rank: len(p.Ranks), Host: t.host, Devices: []string{}, LocalRank: sizes[t.host], Node: nodes[t.host]})
			sizes[t.host]++
		}
	}
	for i := range p.Ranks {
		p.Ranks[i].LocalSize = sizes[p.Ranks[i].Host]
	}
	return p
}
