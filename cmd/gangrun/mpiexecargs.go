package main

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

// mpiexecArgs is what a command line of mpiexec or mpirun asks for.
type mpiexecArgs struct {
	apps  []job.App // one for each program; Workdir as it was written
	env   map[string]string
	hosts []mpiexecHost // in the order named, or of the batch system's allocation; none is this machine
	// allocated says that there is an allocation, which is not for hosts that are named.
	allocated bool
	perHost   int // ranks that a host takes in its turn; 0 is not said
	loopback  int
	universe  int // MPI_UNIVERSE_SIZE: 0 when not said, -1 when there is no bound
	stdin     job.Stdin
	timeout   time.Duration
	mpi       job.MPI
	prefix    bool // the rank before each line
	verbose   bool
	// bare says that the ranks get none of the environment but the variables of
	// keep.
	bare          bool
	keep          []string
	ignored       []string // options that change nothing here
	help, version bool
}

// mpiexecHost is a host as it was named.
type mpiexecHost struct {
	name  string // maybe with USER@ before it
	slots int    // 0 when not said
}

// host is its name alone.
func (h mpiexecHost) host() string { return h.name[strings.LastIndexByte(h.name, '@')+1:] }

// ranks is the size of the gang.
func (a mpiexecArgs) ranks() int {
	n := 0
	for _, app := range a.apps {
		n += app.Ranks
	}
	return n
}

// places is how many ranks the hosts take before any of them has its next turn.
func (a mpiexecArgs) places() int {
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
func (a mpiexecArgs) turn(h mpiexecHost) int {
	if a.perHost > 0 {
		return a.perHost
	}
	return max(1, h.slots)
}

// mpiexecParser reads the words of one command line.
type mpiexecParser struct {
	mpiexecArgs
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

// parseMpiexec reads a command line of mpiexec or mpirun. Relative to it, env
// is the environment and read reads a file. Errors are for the user.
func parseMpiexec(args []string, env func(string) (string, bool), read func(path string) ([]byte, error)) (mpiexecArgs, error) {
	p := &mpiexecParser{read: read, rest: args}
	p.stdin, p.mpi, p.env = job.StdinRank(0), job.MPIAuto, map[string]string{}
	for more := true; more; {
		p.app, p.local = job.App{Env: map[string]string{}}, false
		if err := p.options(); err != nil || p.help || p.version {
			return p.mpiexecArgs, err
		}
		var err error
		if more, err = p.program(); err != nil {
			return p.mpiexecArgs, err
		}
	}
	return p.mpiexecArgs, p.finish(env)
}

// options reads up to the first word that is no option.
func (p *mpiexecParser) options() error {
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
		o, known := mpiexecOptions[name]
		if !known {
			hint := "gangrun mpiexec --help lists the options"
			if near := suggest.Nearest(name, slices.Sorted(maps.Keys(mpiexecOptions))); near != "" {
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
			p.ignored = append(p.ignored, "-"+name)
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
func (p *mpiexecParser) program() (more bool, err error) {
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
func (p *mpiexecParser) finish(env func(string) (string, bool)) error {
	if len(p.listed) > 0 && len(p.apps) > 1 {
		return failure.Usage("use -genvnone or -genvlist, for all of them", "mpiexec: of several programs one alone (%q) cannot be kept from seeing the environment", p.listed[0])
	}
	if p.loopback == 0 {
		list, err := inventory.FromEnvironment(env, p.read)
		p.allocated = err != nil || list.Kind != inventory.None
		switch {
		case p.here:
			p.hosts = []mpiexecHost{{name: "localhost"}}
		case len(p.hosts) > 0: // named
		case err != nil:
			return &failure.Error{Code: failure.CodeUsage, Err: err}
		default:
			for _, h := range list.Hosts {
				p.hosts = append(p.hosts, mpiexecHost{h.Name, h.Slots})
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
		p.universe = p.places()
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
func (p *mpiexecParser) nameHosts(from string, hosts []mpiexecHost) error {
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

// hostWord reads NAME or NAME:SLOTS. A bare IPv6 address has no slots.
func hostWord(word string) mpiexecHost {
	inner, behind, bracketed := "", "", false
	if rest, ok := strings.CutPrefix(word, "["); ok {
		inner, behind, bracketed = strings.Cut(rest, "]")
	}
	if bracketed {
		word = inner
		if behind == "" {
			return mpiexecHost{name: word}
		}
		slots, err := strconv.Atoi(strings.TrimPrefix(behind, ":"))
		if err != nil || slots < 1 || behind[0] != ':' {
			return mpiexecHost{}
		}
		return mpiexecHost{name: word, slots: slots}
	}
	if strings.Count(word, ":") != 1 {
		return mpiexecHost{name: word}
	}
	name, text, _ := strings.Cut(word, ":")
	slots, err := strconv.Atoi(text)
	if err != nil || slots < 1 {
		return mpiexecHost{}
	}
	return mpiexecHost{name: name, slots: slots}
}

// hostFile reads a host file of either family: NAME, NAME:SLOTS or NAME
// slots=SLOTS a line; the other words of a line do not matter here.
func hostFile(path string, data []byte) ([]mpiexecHost, error) {
	var hosts []mpiexecHost
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		h := hostWord(words[0])
		for _, w := range words[1:] {
			if text, ok := strings.CutPrefix(w, "slots="); ok {
				n, err := strconv.Atoi(text)
				if err != nil || n < 1 {
					h.name = ""
				}
				h.slots = n
			}
		}
		if h.name == "" || h.slots > job.MaxRanks {
			return nil, failure.Usage("write NAME, NAME:SLOTS or NAME slots=SLOTS on each line", "mpiexec: %s:%d: %q names no host", path, number, strings.TrimSpace(line))
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}
