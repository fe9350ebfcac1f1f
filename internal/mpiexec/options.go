package mpiexec

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

// option is one option of mpiexec or mpirun.
type option struct {
	values int  // words that follow it
	pair   bool // two words, or one with an = in it
	// set takes the values in; nil is for options that change nothing here.
	set func(p *parser, name string, values []string) error
	// refuse says what to do instead of an option that cannot be honoured.
	refuse string
}

// options are all that are known, without their dashes. It is only read.
var options = optionTable()

// OptionNames returns the names of all options, without their dashes, in no particular order.
func OptionNames() []string { return slices.Collect(maps.Keys(options)) }

// table is the known options by their names, without dashes.
type table map[string]option

func optionTable() table {
	t := table{}
	t.addGang()
	t.addEnvironment()
	t.addIgnored()
	t.addRefused()
	return t
}

func (t table) add(o option, names ...string) {
	for _, name := range names {
		t[name] = o
	}
}

// flag is an option without a value.
func flag(set func(p *parser)) option {
	return option{set: func(p *parser, _ string, _ []string) error { set(p); return nil }}
}

// one is an option with one value.
func one(set func(p *parser, name, value string) error) option {
	return option{values: 1, set: func(p *parser, name string, v []string) error { return set(p, name, v[0]) }}
}

// number is an option whose value is a whole number within bounds.
func number(least, most int, set func(p *parser, n int)) option {
	return one(func(p *parser, name, value string) error {
		n, err := wholeNumber("-"+name, value, least, most)
		if err == nil {
			set(p, n)
		}
		return err
	})
}

// addGang adds the options that say what runs where, and what is shown of it.
func (t table) addGang() {
	t.add(number(1, job.MaxRanks, func(p *parser, n int) { p.app.Ranks = n }), "n", "np", "c")
	t.add(number(1, job.MaxRanks, func(p *parser, n int) { p.perHost = n }), "ppn", "perhost", "npernode", "N", "ranks-per-node")
	t.add(flag(func(p *parser) { p.perHost = 1 }), "pernode", "bynode", "rr")
	t.add(number(1, job.MaxLoopback, func(p *parser, n int) { p.loopback = n }), "loopback")
	t.add(number(-1, maxTimeout, func(p *parser, n int) {
		p.timeout, p.override = time.Duration(max(0, n))*time.Second, true
	}), "t", "timeout")
	t.add(one(setHosts), "hosts", "host", "H")
	t.add(one(setHostFile), "f", "hostfile", "machinefile", "machine", "default-hostfile")
	t.add(flag(func(p *parser) { p.here = true }), "localonly", "localhost-only", "local")
	t.add(one(setUniverse), "usize")
	t.add(one(func(p *parser, _, v string) error { p.stdin = job.Stdin(v); return nil }), "s", "stdin")
	t.add(one(func(p *parser, _, v string) error {
		mpi, err := job.ParseMode("mpi", v, job.MPIs())
		if err != nil {
			return failure.Usage("write --mpi auto, unless the program hides its library", "mpiexec: %w", err)
		}
		p.mpi = mpi
		return nil
	}), "mpi")
	t.add(one(func(p *parser, name, v string) error {
		if v == "" {
			return failure.Usage("name a directory", "mpiexec: -%s is empty", name)
		}
		p.app.Workdir = v
		return nil
	}), "wdir", "wd")
	t.add(flag(func(p *parser) { p.Prefix = true }), "l", "prepend-rank", "tag-output")
	t.add(flag(func(p *parser) { p.Verbose = true }), "v", "verbose")
	t.add(flag(func(p *parser) { p.Help = true }), "h", "help")
	t.add(flag(func(p *parser) { p.Version = true }), "V", "version", "info")
	t.add(option{values: 1, set: setMapping}, "map-by")
}

// addEnvironment adds the options for the variables of the ranks.
func (t table) addEnvironment() {
	t.add(option{values: 2, pair: true, set: func(p *parser, name string, v []string) error { return setVariable(p.env, name, v) }}, "genv")
	t.add(option{values: 2, pair: true, set: func(p *parser, name string, v []string) error { return setVariable(p.app.Env, name, v) }}, "env")
	t.add(one(exportVariable), "x")
	t.add(flag(func(p *parser) { p.Bare = true }), "genvnone")
	t.add(flag(func(p *parser) { p.Bare, p.local = true, true }), "envnone")
	t.add(one(func(p *parser, name, v string) error { return keepVariables(p, name, v) }), "genvlist")
	t.add(one(func(p *parser, name, v string) error {
		p.local = true
		return keepVariables(p, name, v)
	}), "envlist")
	t.add(flag(func(p *parser) { p.Bare, p.Keep = false, nil }), "genvall", "envall")
	for name, prefix := range map[string]string{"mca": "OMPI_MCA_", "gmca": "OMPI_MCA_", "omca": "OMPI_MCA_", "prtemca": "PRTE_MCA_", "pmixmca": "PMIX_MCA_"} {
		t.add(option{values: 2, set: func(p *parser, name string, v []string) error {
			return setVariable(p.env, name, []string{prefix + v[0], v[1]})
		}}, name)
	}
}

// addIgnored adds the options that change nothing: what they ask for is done anyway, makes
// no difference to gangrun, or is about programs that gangrun does not start.
func (t table) addIgnored() {
	t.add(option{}, "oversubscribe", "overload-allowed", "allow-run-as-root", "byslot", "nooversubscribe-warn",
		"report-bindings", "display-map", "display-allocation", "display-topo", "print-rank-map", "print-all-exitcodes", "leave-session-attached",
		"use-hwthread-cpus", "quiet", "q", "bind-to-none", "bind-to-core", "bind-to-socket", "disable-hostname-propagation", "enable-x", "disable-x",
		"novm", "pmi-port", "order-nodes-by-name", "abort-on-non-zero-status", "skip-launch-node")
	t.add(option{values: 1}, "launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "bind-to", "membind", "rank-by", "topolib", "demux",
		"iface", "nameserver", "localhost", "prefix", "display", "cpus-per-proc", "cpus-per-rank", "gpus-per-proc", "order-nodes", "profile")
}

// addRefused adds the options that gangrun cannot honour, with what to do instead.
func (t table) addRefused() {
	t.add(option{refuse: "separate the programs with colons on the command line"}, "configfile", "app")
	t.add(option{refuse: "the ranks' output is in files anyway: gangrun logs shows it"}, "outfile", "outfile-pattern", "errfile", "errfile-pattern", "output-filename", "o", "output")
	t.add(option{refuse: "use -l, which puts the rank before each line"}, "prepend-pattern", "timestamp-output", "xml")
	t.add(option{refuse: "redirect both: gangrun mpiexec ... 2>&1"}, "merge-stderr-to-stdout")
	t.add(option{refuse: "a gang ends when one of its ranks fails"}, "disable-auto-cleanup", "enable-recovery", "continuous", "max-restarts")
	t.add(option{refuse: "use gangrun run --checkpoint-dir, and checkpoints of the program's own"}, "ckpoint", "ckpointlib", "ckpoint-prefix", "ckpoint-num", "ckpoint-interval")
	t.add(option{refuse: "write the program with its path"}, "path")
	t.add(option{refuse: "start the debugger as the program: gangrun mpiexec -n 2 gdb -batch -ex run PROGRAM"}, "debug", "debugger", "tv", "xterm", "gdb")
	t.add(option{refuse: "name the hosts that ranks may run on with -hosts, and how many each takes with -ppn"}, "nolocal", "npersocket", "rankfile", "rf", "slot-list", "cpu-set", "cpu-list", "hosts-group", "relative-host")
	t.add(option{refuse: "gangrun sees to too many ranks for the cores itself; leave the option out"}, "nooversubscribe", "no-oversubscribe")
	t.add(option{refuse: "set the variables with -genv or --mca"}, "tune", "am")
}

func setHosts(p *parser, name, value string) error {
	var hosts []host
	for word := range strings.SplitSeq(value, ",") {
		hosts = append(hosts, hostWord(word))
	}
	return p.nameHosts(name, hosts)
}

func setHostFile(p *parser, name, path string) error {
	data, err := p.read(path)
	if err != nil {
		return failure.Usage("name a file with a host on each line", "mpiexec: -%s: %w", name, err)
	}
	hosts, err := hostFile(path, data)
	if err != nil {
		return err
	}
	return p.nameHosts(name, hosts)
}

func setUniverse(p *parser, name, value string) error {
	p.size, p.Universe = value, 0
	switch value {
	case "SYSTEM":
	case "INFINITE":
		p.Universe = -1
	default:
		n, err := wholeNumber("-"+name, value, 1, job.MaxRanks)
		if err != nil {
			return failure.Usage("write a number, SYSTEM or INFINITE", "mpiexec: -%s is %q", name, value)
		}
		p.Universe = n
	}
	return nil
}

// setMapping honours what says how many ranks a host takes.
func setMapping(p *parser, name string, values []string) error {
	policy, _, _ := strings.Cut(strings.ToLower(values[0]), ",")
	parts := strings.Split(policy, ":")
	if len(parts) >= 3 && parts[0] == "ppr" && parts[2] == "node" {
		n, err := wholeNumber("-"+name+" ppr", parts[1], 1, job.MaxRanks)
		p.perHost = n
		return err
	}
	if parts[0] == "node" {
		p.perHost = 1
		return nil
	}
	if parts[0] == "ppr" || parts[0] == "seq" || parts[0] == "rankfile" {
		return failure.Usage("use -ppn N", "mpiexec: -%s %q is not supported", name, values[0])
	}
	p.Ignored = append(p.Ignored, "-"+name+" "+values[0])
	return nil
}

// setVariable takes NAME VALUE or NAME=VALUE.
func setVariable(env map[string]string, option string, words []string) error {
	name, value, ok := strings.Cut(words[0], "=")
	if len(words) == 2 {
		name, value = words[0], words[1]
	} else if !ok {
		return failure.Usage("write -"+option+" NAME VALUE", "mpiexec: -%s %q has no value", option, words[0])
	}
	if err := checkVariable(option, name); err != nil {
		return err
	}
	if strings.ContainsRune(value, 0) {
		return failure.Usage("leave it out", "mpiexec: -%s: the value of %s has a NUL byte", option, name)
	}
	env[name] = value
	return nil
}

func checkVariable(option, name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return failure.Usage("write -"+option+" NAME", "mpiexec: -%s has %q, which is no name of a variable", option, name)
	}
	return nil
}

// exportVariable takes NAME, which hands it on, or NAME=VALUE.
func exportVariable(p *parser, option, word string) error {
	if strings.Contains(word, "=") {
		return setVariable(p.app.Env, option, []string{word})
	}
	p.Keep = append(p.Keep, word)
	return checkVariable(option, word)
}

// keepVariables takes the names of all that the ranks may see.
func keepVariables(p *parser, option, list string) error {
	names := strings.Split(list, ",")
	p.Bare, p.Keep = true, append(p.Keep, names...)
	i := slices.IndexFunc(names, func(n string) bool { return checkVariable(option, n) != nil })
	if i >= 0 {
		return checkVariable(option, names[i])
	}
	return nil
}
