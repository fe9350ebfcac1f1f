package main

import (
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

// mpiexecOption is one option of mpiexec or mpirun.
type mpiexecOption struct {
	values int  // words that follow it
	pair   bool // two words, or one with an = in it
	// set takes the values in; nil is for options that change nothing here.
	set func(p *mpiexecParser, name string, values []string) error
	// refuse says what to do instead of an option that cannot be honoured.
	refuse string
}

// mpiexecOptions are all that are known, without their dashes. It is only read.
var mpiexecOptions = mpiexecOptionTable()

func mpiexecOptionTable() map[string]mpiexecOption {
	table := map[string]mpiexecOption{}
	add := func(o mpiexecOption, names ...string) {
		for _, name := range names {
			table[name] = o
		}
	}
	flag := func(set func(p *mpiexecParser)) mpiexecOption {
		return mpiexecOption{set: func(p *mpiexecParser, _ string, _ []string) error { set(p); return nil }}
	}
	one := func(set func(p *mpiexecParser, name, value string) error) mpiexecOption {
		return mpiexecOption{values: 1, set: func(p *mpiexecParser, name string, v []string) error { return set(p, name, v[0]) }}
	}
	number := func(least, most int, set func(p *mpiexecParser, n int)) mpiexecOption {
		return one(func(p *mpiexecParser, name, value string) error {
			n, err := wholeNumber("-"+name, value, least, most)
			if err == nil {
				set(p, n)
			}
			return err
		})
	}

	add(number(1, job.MaxRanks, func(p *mpiexecParser, n int) { p.app.Ranks = n }), "n", "np", "c")
	add(number(1, job.MaxRanks, func(p *mpiexecParser, n int) { p.perHost = n }), "ppn", "perhost", "npernode", "N", "ranks-per-node")
	add(flag(func(p *mpiexecParser) { p.perHost = 1 }), "pernode", "bynode", "rr")
	add(number(1, job.MaxLoopback, func(p *mpiexecParser, n int) { p.loopback = n }), "loopback")
	add(number(-1, maxTimeout, func(p *mpiexecParser, n int) {
		p.timeout, p.override = time.Duration(max(0, n))*time.Second, true
	}), "t", "timeout")
	add(one(setHosts), "hosts", "host", "H")
	add(one(setHostFile), "f", "hostfile", "machinefile", "machine", "default-hostfile")
	add(flag(func(p *mpiexecParser) { p.here = true }), "localonly", "localhost-only", "local")
	add(one(setUniverse), "usize")
	add(one(func(p *mpiexecParser, _, v string) error { p.stdin = job.Stdin(v); return nil }), "s", "stdin")
	add(one(func(p *mpiexecParser, _, v string) error {
		mpi, err := job.ParseMode("mpi", v, job.MPIs())
		if err != nil {
			return failure.Usage("write --mpi auto, unless the program hides its library", "mpiexec: %w", err)
		}
		p.mpi = mpi
		return nil
	}), "mpi")
	add(one(func(p *mpiexecParser, name, v string) error {
		if v == "" {
			return failure.Usage("name a directory", "mpiexec: -%s is empty", name)
		}
		p.app.Workdir = v
		return nil
	}), "wdir", "wd")
	add(flag(func(p *mpiexecParser) { p.prefix = true }), "l", "prepend-rank", "tag-output")
	add(flag(func(p *mpiexecParser) { p.verbose = true }), "v", "verbose")
	add(flag(func(p *mpiexecParser) { p.help = true }), "h", "help")
	add(flag(func(p *mpiexecParser) { p.version = true }), "V", "version", "info")

	add(mpiexecOption{values: 2, pair: true, set: func(p *mpiexecParser, name string, v []string) error { return setVariable(p.env, name, v) }}, "genv")
	add(mpiexecOption{values: 2, pair: true, set: func(p *mpiexecParser, name string, v []string) error { return setVariable(p.app.Env, name, v) }}, "env")
	add(one(exportVariable), "x")
	add(flag(func(p *mpiexecParser) { p.bare = true }), "genvnone")
	add(flag(func(p *mpiexecParser) { p.bare, p.local = true, true }), "envnone")
	add(one(func(p *mpiexecParser, name, v string) error { return keepVariables(p, name, v) }), "genvlist")
	add(one(func(p *mpiexecParser, name, v string) error {
		p.local = true
		return keepVariables(p, name, v)
	}), "envlist")
	add(flag(func(p *mpiexecParser) { p.bare, p.keep = false, nil }), "genvall", "envall")
	for name, prefix := range map[string]string{"mca": "OMPI_MCA_", "gmca": "OMPI_MCA_", "omca": "OMPI_MCA_", "prtemca": "PRTE_MCA_", "pmixmca": "PMIX_MCA_"} {
		add(mpiexecOption{values: 2, set: func(p *mpiexecParser, name string, v []string) error {
			return setVariable(p.env, name, []string{prefix + v[0], v[1]})
		}}, name)
	}
	add(mpiexecOption{values: 1, set: setMapping}, "map-by")

	// What these ask for is done anyway, makes no difference to gangrun, or is about
	// programs that it does not start.
	add(mpiexecOption{}, "oversubscribe", "overload-allowed", "allow-run-as-root", "byslot", "nooversubscribe-warn",
		"report-bindings", "display-map", "display-allocation", "display-topo", "print-rank-map", "print-all-exitcodes", "leave-session-attached",
		"use-hwthread-cpus", "quiet", "q", "bind-to-none", "bind-to-core", "bind-to-socket", "disable-hostname-propagation", "enable-x", "disable-x",
		"novm", "pmi-port", "order-nodes-by-name", "abort-on-non-zero-status", "skip-launch-node")
	add(mpiexecOption{values: 1}, "launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "bind-to", "membind", "rank-by", "topolib", "demux",
		"iface", "nameserver", "localhost", "prefix", "display", "cpus-per-proc", "cpus-per-rank", "gpus-per-proc", "order-nodes", "profile")

	add(mpiexecOption{refuse: "separate the programs with colons on the command line"}, "configfile", "app")
	add(mpiexecOption{refuse: "the ranks' output is in files anyway: gangrun logs shows it"}, "outfile", "outfile-pattern", "errfile", "errfile-pattern", "output-filename", "o", "output")
	add(mpiexecOption{refuse: "use -l, which puts the rank before each line"}, "prepend-pattern", "timestamp-output", "xml")
	add(mpiexecOption{refuse: "redirect both: gangrun mpiexec ... 2>&1"}, "merge-stderr-to-stdout")
	add(mpiexecOption{refuse: "a gang ends when one of its ranks fails"}, "disable-auto-cleanup", "enable-recovery", "continuous", "max-restarts")
	add(mpiexecOption{refuse: "use gangrun run --checkpoint-dir, and checkpoints of the program's own"}, "ckpoint", "ckpointlib", "ckpoint-prefix", "ckpoint-num", "ckpoint-interval")
	add(mpiexecOption{refuse: "write the program with its path"}, "path")
	add(mpiexecOption{refuse: "start the debugger as the program: gangrun mpiexec -n 2 gdb -batch -ex run PROGRAM"}, "debug", "debugger", "tv", "xterm", "gdb")
	add(mpiexecOption{refuse: "name the hosts that ranks may run on with -hosts, and how many each takes with -ppn"}, "nolocal", "npersocket", "rankfile", "rf", "slot-list", "cpu-set", "cpu-list", "hosts-group", "relative-host")
	add(mpiexecOption{refuse: "gangrun sees to too many ranks for the cores itself; leave the option out"}, "nooversubscribe", "no-oversubscribe")
	add(mpiexecOption{refuse: "set the variables with -genv or --mca"}, "tune", "am")
	return table
}

func setHosts(p *mpiexecParser, name, value string) error {
	var hosts []mpiexecHost
	for word := range strings.SplitSeq(value, ",") {
		hosts = append(hosts, hostWord(word))
	}
	return p.nameHosts(name, hosts)
}

func setHostFile(p *mpiexecParser, name, path string) error {
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

func setUniverse(p *mpiexecParser, name, value string) error {
	p.size, p.universe = value, 0
	switch value {
	case "SYSTEM":
	case "INFINITE":
		p.universe = -1
	default:
		n, err := wholeNumber("-"+name, value, 1, job.MaxRanks)
		if err != nil {
			return failure.Usage("write a number, SYSTEM or INFINITE", "mpiexec: -%s is %q", name, value)
		}
		p.universe = n
	}
	return nil
}

// setMapping honours what says how many ranks a host takes.
func setMapping(p *mpiexecParser, name string, values []string) error {
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
	p.ignored = append(p.ignored, "-"+name+" "+values[0])
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
func exportVariable(p *mpiexecParser, option, word string) error {
	if strings.Contains(word, "=") {
		return setVariable(p.app.Env, option, []string{word})
	}
	p.keep = append(p.keep, word)
	return checkVariable(option, word)
}

// keepVariables takes the names of all that the ranks may see.
func keepVariables(p *mpiexecParser, option, list string) error {
	names := strings.Split(list, ",")
	p.bare, p.keep = true, append(p.keep, names...)
	i := slices.IndexFunc(names, func(n string) bool { return checkVariable(option, n) != nil })
	if i >= 0 {
		return checkVariable(option, names[i])
	}
	return nil
}
