// Package mpiexec reads command lines of mpiexec and mpirun. It places ranks on hosts in the
// order that the command line asks for.
package mpiexec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/topology/inventory"
)

// Args is what a command line of mpiexec or mpirun asks for.
type Args struct {
	apps    []job.App // one for each program; Workdir as it was written
	env     map[string]string
	stdin   job.Stdin
	timeout time.Duration
	mpi     job.MPI
	placement
	Environment
	Shown
	Universe      int  // MPI_UNIVERSE_SIZE; 0 if it is not given, -1 for no limit
	Help, Version bool // print this, and run nothing
}

// placement is where the ranks are to run.
type placement struct {
	hosts     []host // in the order named, or of the batch system's allocation; none is this machine
	allocated bool   // there is an allocation of a batch system; hosts that are named may not be part of it
	perHost   int    // how many ranks a host takes in its turn; 0 is not said
	loopback  int    // number of simulated hosts; 0 means none
}

// Environment says which variables of this process's environment the ranks get.
type Environment struct {
	Bare bool     // only the variables of Keep
	Keep []string // names
}

// Shown says what gangrun shows besides the output of the ranks.
type Shown struct {
	Prefix  bool // the rank before each line
	Verbose bool
	Ignored []string // options that change nothing here
}

// host is a host as it was named.
type host struct {
	name  string // maybe with USER@ before it
	slots int    // 0 when not said
}

// host is its name alone.
func (h host) bare() string { return h.name[strings.LastIndexByte(h.name, '@')+1:] }

// ranks is the size of the gang.
func (a Args) ranks() int {
	n := 0
	for _, app := range a.apps {
		n += app.Ranks
	}
	return n
}

// places is how many ranks the hosts take before any of them has its next turn.
func (a Args) places() int {
	n := 0
	for _, h := range a.hosts {
		n += a.turn(h)
	}
	if len(a.hosts) == 0 {
		n = max(1, a.loopback) * max(1, a.perHost)
	}
	return n
}

// turn is how many ranks a host takes in its turn.
func (a Args) turn(h host) int {
	if a.perHost > 0 {
		return a.perHost
	}
	return max(1, h.slots)
}

// parser reads the words of one command line.
type parser struct {
	Args
	read     func(path string) ([]byte, error)
	app      job.App
	local    bool // the program has -envnone or -envlist of its own
	rest     []string
	from     string // the option that named the hosts
	size     string // of -usize
	listed   []string
	override bool // -timeout was given
	here     bool // no other machine is wanted
}

// Parse reads a command line of mpiexec or mpirun. env looks up variables of the environment, and
// readFile reads a file that the command line names. The texts of its errors are for the user.
func Parse(args []string, env func(string) (string, bool), readFile func(path string) ([]byte, error)) (Args, error) {
	p := &parser{read: readFile, rest: args}
	p.stdin, p.mpi, p.env = job.StdinRank(0), job.MPIAuto, map[string]string{}
	for more := true; more; {
		p.app, p.local = job.App{Env: map[string]string{}}, false
		if err := p.options(); err != nil || p.Help || p.Version {
			return p.Args, err
		}
		var err error
		if more, err = p.program(); err != nil {
			return p.Args, err
		}
	}
	return p.Args, p.finish(env)
}

// options reads up to the first word that is no option.
func (p *parser) options() error {
	for len(p.rest) > 0 {
		word := p.rest[0]
		if len(word) < 2 || word[0] != '-' {
			return nil
		}
		p.rest = p.rest[1:]
		if word == "--" {
			return nil
		}
		name := strings.TrimPrefix(word[1:], "-")
		name, value, glued := strings.Cut(name, "=")
		o, known := options[name]
		if !known {
			hint := "gangrun mpiexec --help lists the options"
			if near := suggest.Nearest(name, slices.Sorted(maps.Keys(options))); near != "" {
				hint = "did you mean -" + near + "? " + hint
			}
			return failure.Usage(hint, "mpiexec has no option %q", word)
		}
		if o.refuse != "" {
			return failure.Usage(o.refuse, "mpiexec: the option %q is not supported", word)
		}
		var values []string
		if glued {
			values = append(values, value)
			if o.values == 0 {
				return failure.Usage("write -"+name, "mpiexec: -%s takes no value, got %q", name, value)
			}
		}
		for len(values) < o.values {
			if len(values) == 1 && o.pair && strings.Contains(values[0], "=") {
				break
			}
			if len(p.rest) == 0 {
				return failure.Usage("gangrun mpiexec --help lists the options", "mpiexec: -%s needs a value", name)
			}
			values, p.rest = append(values, p.rest[0]), p.rest[1:]
		}
		if o.set == nil {
			p.Ignored = append(p.Ignored, "-"+name)
			continue
		}
		if err := o.set(p, name, values); err != nil {
			return err
		}
	}
	return nil
}

// program reads a program with its arguments, up to a colon; more says that
// another one follows.
func (p *parser) program() (more bool, err error) {
	end := slices.Index(p.rest, ":")
	more = end >= 0
	if !more {
		end = len(p.rest)
	}
	if end == 0 || p.rest[0] == "" {
		return false, failure.Usage("gangrun mpiexec -n 4 PROGRAM; other programs follow after a colon", "mpiexec has no program to start")
	}
	p.app.Command = slices.Clone(p.rest[:end])
	p.rest = p.rest[min(end+1, len(p.rest)):]
	p.apps = append(p.apps, p.app)
	if p.local {
		p.listed = append(p.listed, p.app.Command[0])
	}
	return more, nil
}

// finish fills in what depends on more than one option.
func (p *parser) finish(env func(string) (string, bool)) error {
	if len(p.listed) > 0 && len(p.apps) > 1 {
		return failure.Usage("use -genvnone or -genvlist, for all of them", "mpiexec: of several programs one alone (%q) cannot be kept from seeing the environment", p.listed[0])
	}
	if p.loopback == 0 {
		list, err := inventory.FromEnvironment(env, p.read, inventory.Output)
		p.allocated = err != nil || list.Kind != inventory.None
		switch {
		case p.here:
			p.hosts = []host{{name: "localhost"}}
		case len(p.hosts) > 0: // named
		case err != nil:
			return &failure.Error{Code: failure.CodeUsage, Err: err}
		default:
			for _, h := range list.Hosts {
				p.hosts = append(p.hosts, host{h.Name, h.Slots})
			}
		}
	}
	for i := range p.apps {
		if p.apps[i].Ranks == 0 {
			p.apps[i].Ranks = p.places()
		}
		if p.apps[i].Ranks > job.MaxRanks || p.ranks() > job.MaxRanks {
			return failure.Usage("ask for fewer ranks", "mpiexec: the programs have more than %d ranks", job.MaxRanks)
		}
	}
	if _, err := job.ParseStdin(string(p.stdin), p.ranks()); err != nil {
		return failure.Usage("write -s 0, -s all or -s none", "mpiexec: %w", err)
	}
	if p.size == "SYSTEM" {
		p.Universe = p.places()
	}
	if text, ok := env("MPIEXEC_TIMEOUT"); ok && !p.override && text != "" {
		seconds, err := wholeNumber("MPIEXEC_TIMEOUT", text, -1, maxTimeout)
		if err != nil {
			return err
		}
		p.timeout = time.Duration(max(0, seconds)) * time.Second
	}
	return nil
}

// maxTimeout is in seconds: as many as a time.Duration holds, less a margin.
const maxTimeout = math.MaxInt32

func wholeNumber(name, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, failure.Usage(fmt.Sprintf("write a whole number from %d to %d", least, most), "mpiexec: %s is %q", name, text)
	}
	return n, nil
}

// nameHosts takes hosts in; they may be named by one option only.
func (p *parser) nameHosts(from string, hosts []host) error {
	if p.from != "" && p.from != from {
		return failure.Usage("name the hosts once", "mpiexec: both -%s and -%s name hosts", p.from, from)
	}
	p.from = from
	p.hosts = append(p.hosts, hosts...)
	for _, h := range hosts {
		if h.name == "" || h.slots > job.MaxRanks {
			return failure.Usage("write -hosts NAME or NAME:SLOTS, with commas between", "mpiexec: -%s has a host without a name, or with too many slots", from)
		}
	}
	if len(p.hosts) == 0 {
		return failure.Usage("name a host", "mpiexec: -%s names no host", from)
	}
	return nil
}
