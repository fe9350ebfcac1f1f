package mpiexec

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
)

func TestParseMpiexec(t *testing.T) {
	plain := Args{apps: []job.App{appOf(2, "a.out")}, env: map[string]string{}, stdin: "0", mpi: job.MPIAuto}
	with := func(change func(*Args)) Args {
		a := plain
		a.apps, a.env = []job.App{appOf(2, "a.out")}, map[string]string{}
		change(&a)
		return a
	}
	set := func(env map[string]string) func(*Args) { return func(a *Args) { a.env = env } }
	local := func(env map[string]string) func(*Args) { return func(a *Args) { a.apps[0].Env = env } }
	hosts := func(h ...host) func(*Args) { return func(a *Args) { a.hosts = h } }
	allocated := func(change func(*Args)) Args {
		a := with(change)
		a.allocated = true
		return a
	}
	slurm := map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x2),1"}
	for _, c := range []struct {
		name  string
		words string
		env   map[string]string
		want  Args
	}{
		{"-n", "-n 2 a.out", nil, plain},
		{"-np", "-np 2 a.out", nil, plain},
		{"--np", "--np 2 a.out", nil, plain},
		{"with =", "-n=2 a.out", nil, plain},
		{"end of options", "-n 2 -- a.out", nil, plain},
		{"one rank", "a.out", nil, with(func(a *Args) { a.apps[0].Ranks = 1 })},
		{"the program's own options", "-n 2 a.out -n 5 --help -- -l", nil, with(func(a *Args) { a.apps[0].Command = []string{"a.out", "-n", "5", "--help", "--", "-l"} })},
		{"a lone dash is a program", "-n 2 - x", nil, with(func(a *Args) { a.apps[0].Command = []string{"-", "x"} })},
		{"three programs", "-n 2 a.out x : -n 1 -env K V b.out : c.out", nil, with(func(a *Args) {
			a.apps = []job.App{appOf(2, "a.out", "x"), appOf(1, "b.out"), appOf(1, "c.out")}
			a.apps[1].Env["K"] = "V"
		})},
		{"a word with a colon", "-n 2 a.out x: :y", nil, with(func(a *Args) { a.apps[0].Command = []string{"a.out", "x:", ":y"} })},
		{"-genv", "-genv K V -genv L=W=X -n 2 a.out", nil, with(set(map[string]string{"K": "V", "L": "W=X"}))},
		{"-genv with a value that has =", "-n 2 -genv K V=W a.out", nil, with(set(map[string]string{"K": "V=W"}))},
		{"-genv empty", "-n 2 -genv K= a.out", nil, with(set(map[string]string{"K": ""}))},
		{"--mca", "--mca btl self,tcp -gmca pml ob1 --prtemca a b -n 2 a.out", nil,
			with(set(map[string]string{"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "PRTE_MCA_a": "b"}))},
		{"-env", "-n 2 -env K V a.out", nil, with(local(map[string]string{"K": "V"}))},
		{"-x", "-n 2 -x K=V --x L=W a.out", nil, with(local(map[string]string{"K": "V", "L": "W"}))},
		{"-x without a value", "-n 2 -x K a.out", nil, with(func(a *Args) { a.Keep = []string{"K"} })},
		{"-genvnone", "-n 2 -genvnone a.out", nil, with(func(a *Args) { a.Bare = true })},
		{"-genvlist", "-n 2 -genvlist A,B a.out", nil, with(func(a *Args) { a.Bare, a.Keep = true, []string{"A", "B"} })},
		{"-envlist", "-n 2 -envlist A a.out", nil, with(func(a *Args) { a.Bare, a.Keep = true, []string{"A"} })},
		{"-genvall", "-n 2 -genvnone -genvall a.out", nil, plain},
		{"-hosts", "-n 2 -hosts h1,h2:3,[::1]:2,::1,[fe80::1] a.out", nil,
			with(hosts(host{"h1", 0}, host{"h2", 3}, host{"::1", 2}, host{"::1", 0}, host{"fe80::1", 0}))},
		{"-host twice", "-n 2 -host h1 -host h2 a.out", nil, with(hosts(host{"h1", 0}, host{"h2", 0}))},
		{"-H", "-n 2 -H h1 a.out", nil, with(hosts(host{"h1", 0}))},
		{"-f", "-n 2 -f hydra a.out", nil, with(hosts(host{"h1", 2}, host{"h2", 0}))},
		{"-f with a host twice", "-n 2 -f turns a.out", nil, with(hosts(host{"h1", 0}, host{"ann@h2", 2}, host{"h1", 3}))},
		{"--hostfile", "-n 2 --hostfile open a.out", nil, with(hosts(host{"h1", 2}, host{"h2", 1}))},
		{"as many ranks as slots", "-machinefile open a.out", nil, with(func(a *Args) {
			a.apps[0].Ranks, a.hosts = 3, []host{{"h1", 2}, {"h2", 1}}
		})},
		{"as many ranks as -ppn says", "-loopback 2 -ppn 3 a.out", nil, with(func(a *Args) { a.apps[0].Ranks, a.loopback, a.perHost = 6, 2, 3 })},
		{"-ppn", "-n 2 -ppn 3 a.out", nil, with(func(a *Args) { a.perHost = 3 })},
		{"-pernode", "-n 2 -pernode a.out", nil, with(func(a *Args) { a.perHost = 1 })},
		{"--map-by ppr", "-n 2 --map-by ppr:4:node:PE=2 a.out", nil, with(func(a *Args) { a.perHost = 4 })},
		{"--map-by node", "-n 2 --map-by node:OVERSUBSCRIBE a.out", nil, with(func(a *Args) { a.perHost = 1 })},
		{"--map-by core", "-n 2 --map-by core a.out", nil, with(func(a *Args) { a.Ignored = []string{"-map-by core"} })},
		{"-usize", "-n 2 -usize 8 a.out", nil, with(func(a *Args) { a.Universe = 8 })},
		{"-usize INFINITE", "-n 2 -usize INFINITE a.out", nil, with(func(a *Args) { a.Universe = -1 })},
		{"-usize SYSTEM", "-n 2 -usize SYSTEM -hosts h1:2,h2:3 a.out", nil, with(func(a *Args) {
			a.Universe, a.hosts = 5, []host{{"h1", 2}, {"h2", 3}}
		})},
		{"-s", "-n 2 -s all a.out", nil, with(func(a *Args) { a.stdin = job.StdinAll })},
		{"-s of a rank", "-n 2 --stdin 1 a.out", nil, with(func(a *Args) { a.stdin = "1" })},
		{"-t", "-n 2 -t 5 a.out", nil, with(func(a *Args) { a.timeout = 5 * time.Second })},
		{"MPIEXEC_TIMEOUT", "-n 2 a.out", map[string]string{"MPIEXEC_TIMEOUT": "7"}, with(func(a *Args) { a.timeout = 7 * time.Second })},
		{"MPIEXEC_TIMEOUT without a limit", "-n 2 a.out", map[string]string{"MPIEXEC_TIMEOUT": "-1"}, plain},
		{"-timeout over MPIEXEC_TIMEOUT", "-n 2 -timeout 0 a.out", map[string]string{"MPIEXEC_TIMEOUT": "7"}, plain},
		{"--mpi", "-n 2 --mpi openmpi a.out", nil, with(func(a *Args) { a.mpi = job.MPIOpenMPI })},
		{"-wdir", "-n 2 -wdir d a.out", nil, with(func(a *Args) { a.apps[0].Workdir = "d" })},
		{"-l", "-n 2 -l a.out", nil, with(func(a *Args) { a.Prefix = true })},
		{"-v", "-n 2 -v a.out", nil, with(func(a *Args) { a.Verbose = true })},
		{"what changes nothing", "--oversubscribe --allow-run-as-root --bind-to core -launcher ssh -n 2 a.out", nil,
			with(func(a *Args) {
				a.Ignored = []string{"-oversubscribe", "-allow-run-as-root", "-bind-to", "-launcher"}
			})},
		{"-localonly", "-n 2 -localonly a.out", slurm, allocated(hosts(host{"localhost", 0}))},
		{"-localonly of a simulated host", "-n 2 -localonly -loopback 2 a.out", nil, with(func(a *Args) { a.loopback = 2 })},
		{"an allocation", "a.out", slurm, allocated(func(a *Args) {
			a.apps[0].Ranks, a.hosts = 5, []host{{"n1", 2}, {"n2", 2}, {"n3", 1}}
		})},
		{"an allocation with -ppn", "-ppn 3 a.out", slurm, allocated(func(a *Args) {
			a.apps[0].Ranks, a.perHost, a.hosts = 9, 3, []host{{"n1", 2}, {"n2", 2}, {"n3", 1}}
		})},
		{"an allocation and -n", "-n 2 a.out", slurm, allocated(hosts(host{"n1", 2}, host{"n2", 2}, host{"n3", 1}))},
		{"an allocation and -hosts", "-n 2 -hosts h1 a.out", slurm, allocated(hosts(host{"h1", 0}))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseWords(c.env, strings.Fields(c.words)...)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s:\n got %+v\nwant %+v", c.words, got, c.want)
			}
		})
	}
}

// TestParseMpiexecAsked checks that no program is needed to ask for the help or the version.
func TestParseMpiexecAsked(t *testing.T) {
	for _, word := range []string{"-h", "--help", "-help"} {
		if a, err := parseWords(nil, "-n", "2", word); err != nil || !a.Help {
			t.Errorf("%s: %+v, %v", word, a, err)
		}
	}
	for _, word := range []string{"-V", "--version", "-info"} {
		if a, err := parseWords(nil, word); err != nil || !a.Version {
			t.Errorf("%s: %+v, %v", word, a, err)
		}
	}
}

func TestParseMpiexecRefuses(t *testing.T) {
	for words, want := range map[string]string{
		"":                                 "no program",
		"-n 2":                             "no program",
		"-n 2 a.out :":                     "no program",
		"-n 2 : a.out":                     "no program",
		"-n":                               "-n needs a value",
		"-n 0 a.out":                       `-n is "0"`,
		"-n two a.out":                     `-n is "two"`,
		"-n 131073 a.out":                  `-n is "131073"`,
		"-n 131072 a.out : b.out":          "more than 131072 ranks",
		"-nonsense a.out":                  `no option "-nonsense"`,
		"--wdri d a.out":                   `no option "--wdri"`,
		"-l=yes a.out":                     "-l takes no value",
		"-genv K":                          "-genv needs a value",
		"-genv =V a.out":                   "no name of a variable",
		"-x =V a.out":                      "no name of a variable",
		"-genvlist A,,B a.out":             "no name of a variable",
		"-hosts h1,,h2 a.out":              "without a name",
		"-hosts h1:0 a.out":                "without a name",
		"-hosts h1:200000 a.out":           "too many slots",
		"-hosts h1 -f hydra a.out":         "both -hosts and -f",
		"-f nosuch a.out":                  "nosuch",
		"-f none a.out":                    "names no host",
		"-f bad a.out":                     "bad:2",
		"-f slots a.out":                   "slots:1",
		"-s 2 -n 2 a.out":                  "rank 2",
		"-s some a.out":                    `"some"`,
		"-usize MANY a.out":                `-usize is "MANY"`,
		"-t soon a.out":                    `-t is "soon"`,
		"--mpi lam a.out":                  `"lam"`,
		"--map-by ppr:2:socket a.out":      "not supported",
		"-loopback 0 a.out":                "-loopback",
		"-wdir= a.out":                     "-wdir is empty",
		"-disable-auto-cleanup a.out":      "not supported",
		"-configfile x":                    "not supported",
		"-outfile-pattern x a.out":         "not supported",
		"-n 1 -envnone a.out : -n 1 b.out": "one alone",
	} {
		_, err := parseWords(nil, strings.Fields(words)...)
		var f *failure.Error
		if !errors.As(err, &f) || f.Code != failure.CodeUsage || failure.Hint(err) == "" {
			t.Errorf("%q: %v, want a failure of usage with a hint", words, err)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something about %q", words, err, want)
		}
	}
	if _, err := parseWords(map[string]string{"MPIEXEC_TIMEOUT": "soon"}, "a.out"); err == nil || !strings.Contains(err.Error(), "MPIEXEC_TIMEOUT") {
		t.Errorf("MPIEXEC_TIMEOUT=soon: %v", err)
	}
}

// FuzzParseMpiexec checks that any words are either refused as wrong usage, or give a job that can be placed.
func FuzzParseMpiexec(f *testing.F) {
	for _, seed := range []string{
		"-n 2 a.out", "-n 2 -env K V a.out : -n 3 -ppn 2 b.out x", "-hosts h1,[::1]:2 a.out", "-f hydra -genv K=V a.out", "--mca a b -x K -x L=M a.out",
		"-usize SYSTEM -s all -t 3 -l a.out", "-genvlist A,B --map-by ppr:2:node a.out", "-loopback 3 -ppn 2 a.out", "-n=2 -- -x", "-machinefile=open a.out : b.out", "-h",
	} {
		f.Add(strings.ReplaceAll(seed, " ", "\n"), "h1:2\nh2 slots=3\n", "10")
	}
	f.Fuzz(func(t *testing.T, text, file, limit string) {
		words := strings.Split(text, "\n")
		before := slices.Clone(words)
		args, err := Parse(words, func(name string) (string, bool) { return limit, name == "MPIEXEC_TIMEOUT" }, func(string) ([]byte, error) { return []byte(file), nil })
		if !slices.Equal(words, before) {
			t.Fatal("the words have been changed")
		}
		if err != nil {
			var f *failure.Error
			if !errors.As(err, &f) || f.Code != failure.CodeUsage {
				t.Fatalf("%q: %v is no failure of usage", words, err)
			}
			return
		}
		if args.Help || args.Version {
			return
		}
		spec := args.Spec("/here")
		if spec.Ranks < 1 || spec.Ranks > job.MaxRanks || spec.Timeout < 0 {
			t.Fatalf("%q: %+v", words, spec)
		}
		for i, a := range args.apps {
			last := i == len(args.apps)-1
			if a.Ranks < 1 || len(a.Command) == 0 || slices.Contains(a.Command, ":") || last && !slices.Equal(a.Command, words[len(words)-len(a.Command):]) {
				t.Fatalf("%q: program %d is %+v", words, i, a)
			}
		}
		turns, err := args.Turns(hereAlone)
		if err == nil {
			spec.Hosts, err = args.Hosts(hereAlone)
		}
		if err == nil && len(turns) > 0 && spec.Ranks < 1000 {
			var hosts []job.Host
			for _, turn := range turns {
				hosts = append(hosts, job.Host{Name: turn.Host})
			}
			if spec.Hosts != "" {
				list, err := hostlist.ForJob(spec)
				if err != nil {
					t.Fatalf("%q: %v", words, err)
				}
				hosts = list.Hosts
			}
			if p := Deal(spec.Ranks, turns, hosts); len(p.Ranks) != spec.Ranks {
				t.Fatalf("%q: %d ranks of %d", words, len(p.Ranks), spec.Ranks)
			}
		}
	})
}
