package mpiexec

import (
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

// Of the machines node1 and hereAlone, only the names are known.
var (
	node1 = Here{"node1.example", func(name string) bool {
		return slices.Contains([]string{"localhost", "127.0.0.1", "127.0.0.2", "::1", "node1", "node1.example"}, name)
	}}
	hereAlone = Here{"here", func(name string) bool { return name == "here" || name == "localhost" }}
)

// mpiexecFiles are the host files of the tests.
var mpiexecFiles = map[string]string{
	"hydra": "# two of them\nh1:2\n\nh2 binding=user:0\n",
	"open":  "h1 slots=2 max_slots=4\nh2 slots=1 # the small one\n",
	"none":  "# nobody\n",
	"bad":   "h1\nh2:many\n",
	"slots": "h1 slots=0\n",
	"turns": "h1\nann@h2:2\nh1:3\n",
}

func readMpiexecFile(path string) ([]byte, error) {
	text, ok := mpiexecFiles[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func parseWords(env map[string]string, words ...string) (Args, error) {
	return Parse(words, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, readMpiexecFile)
}

func appOf(ranks int, command ...string) job.App {
	return job.App{Ranks: ranks, Command: command, Env: map[string]string{}}
}

// TestMpiexecOptions checks that no option is both read and refused, and that the names of options are valid.
func TestMpiexecOptions(t *testing.T) {
	for name, o := range options {
		if o.refuse != "" && (o.set != nil || o.values > 0) {
			t.Errorf("-%s is refused and read", name)
		}
		if strings.HasPrefix(name, "-") || strings.Contains(name, "=") {
			t.Errorf("%q is no name of an option", name)
		}
	}
}

func TestMpiexecSpec(t *testing.T) {
	args, err := parseWords(nil, strings.Fields("-genv A 1 -genv B 1 -n 2 -env B 2 -wdir d -t 3 --mpi none a.out x")...)
	if err != nil {
		t.Fatal(err)
	}
	spec := args.Spec("/here")
	if err := jobcheck.Spec(spec); err != nil {
		t.Error(err)
	}
	if want := map[string]string{"A": "1", "B": "2"}; !maps.Equal(spec.Env, want) {
		t.Errorf("environment %v, want %v", spec.Env, want)
	}
	if spec.Ranks != 2 || spec.Workdir != "/here/d" || spec.Apps != nil || !slices.Equal(spec.Command, []string{"a.out", "x"}) {
		t.Errorf("one program: %+v", spec)
	}
	if spec.Retries != 0 || spec.Preflight != job.PreflightOff || spec.Output != job.OutputAll || spec.MPI != job.MPINone || time.Duration(spec.Timeout) != 3*time.Second {
		t.Errorf("%+v", spec)
	}

	args, err = parseWords(nil, strings.Fields("-genv A 1 -n 2 -wdir d a.out : -n 3 -env A 2 -wdir /e b.out")...)
	if err != nil {
		t.Fatal(err)
	}
	spec = args.Spec("/here")
	if err := jobcheck.Spec(spec); err != nil {
		t.Error(err)
	}
	want := []job.App{appOf(2, "a.out"), appOf(3, "b.out")}
	want[0].Workdir, want[1].Workdir, want[1].Env["A"] = "/here/d", "/e", "2"
	if spec.Ranks != 5 || !reflect.DeepEqual(spec.Apps, want) || spec.Workdir != "/here" || !maps.Equal(spec.Env, map[string]string{"A": "1"}) {
		t.Errorf("two programs: %+v", spec)
	}
}

func TestMpiexecTurns(t *testing.T) {
	for _, c := range []struct {
		words string
		want  []Turn // if bad is set, want is nil and the words are refused
		bad   bool
	}{
		{"a.out", nil, false},
		{"-loopback 2 a.out", nil, false},
		{"-ppn 2 -loopback 2 a.out", []Turn{{"h1", 2}, {"h2", 2}}, false},
		{"-hosts localhost,127.0.0.2:3,::1,node1,node1.example a.out",
			[]Turn{{"node1.example", 1}, {"node1.example", 3}, {"node1.example", 1}, {"node1.example", 1}, {"node1.example", 1}}, false},
		{"-loopback 3 -hosts h3:2,h1 a.out", []Turn{{"h3", 2}, {"h1", 1}}, false},
		{"-loopback 3 -ppn 4 -hosts h3:2,h1 a.out", []Turn{{"h3", 4}, {"h1", 4}}, false},
		{"-loopback 3 -hosts h4 a.out", nil, true},
		{"-hosts node2,localhost:2,root@node3:3 a.out", []Turn{{"node2", 1}, {"node1.example", 2}, {"node3", 3}}, false},
		{"-hosts 10.0.0.1,[fe80::1]:2 a.out", []Turn{{"10.0.0.1", 1}, {"fe80::1", 2}}, false},
	} {
		args, err := parseWords(nil, strings.Fields(c.words)...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := args.Turns(node1)
		if (err != nil) != c.bad || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.words, got, err, c.want)
		}
	}
}

func TestMpiexecOthers(t *testing.T) {
	for _, c := range []struct {
		words, want string
		bad         bool
	}{
		{"a.out", "", false},
		{"-hosts localhost,127.0.0.2:3,node1 a.out", "", false},
		{"-loopback 3 -hosts h3:2,h1 a.out", "", false},
		{"-hosts h1,h2:4 a.out", "h1:1,h2:4", false},
		{"-hosts h1,h2:4,h1:2 a.out", "h1:3,h2:4", false},
		{"-ppn 8 -hosts h1,h2:4 a.out", "h1:8,h2:8", false},
		{"-hosts h1,localhost:2,node1 a.out", "h1:1,node1.example:3", false},
		{"-hosts me@h1:2,10.0.0.1,[fe80::1]:2 a.out", "me@h1:2,10.0.0.1:1,[fe80::1]:2", false},
		{"-hosts h[1-2] a.out", "", true},
		{"-hosts h[1] a.out", "", true},
		{"-hosts h1,-oProxyCommand=x a.out", "", true},
		{"-hosts @h1 a.out", "", true},
		{"-hosts h1,H1 a.out", "", true},
		{"-hosts h1:100000,h1:100000,h1:100000 a.out -n 1", "", true},
	} {
		args, err := parseWords(nil, strings.Fields(c.words)...)
		if err != nil {
			if !c.bad {
				t.Fatal(err)
			}
			continue
		}
		got, err := args.Hosts(node1)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.words, got, err, c.want)
		}
	}
}

func TestDeal(t *testing.T) {
	hosts := []job.Host{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}}
	for _, c := range []struct {
		name  string
		ranks int
		turns []Turn
		on    []string
		local []int
		sizes []int
		used  []string
	}{
		{"in blocks", 5, []Turn{{"h1", 3}, {"h2", 3}}, []string{"h1", "h1", "h1", "h2", "h2"}, []int{0, 1, 2, 0, 1}, []int{3, 3, 3, 2, 2}, []string{"h1", "h2"}},
		{"round and round", 5, []Turn{{"h1", 1}, {"h2", 2}}, []string{"h1", "h2", "h2", "h1", "h2"}, []int{0, 0, 1, 1, 2}, []int{2, 3, 3, 2, 3}, []string{"h1", "h2"}},
		{"in the order named", 2, []Turn{{"h3", 1}, {"h1", 1}, {"h2", 1}}, []string{"h3", "h1"}, []int{0, 0}, []int{1, 1}, []string{"h3", "h1"}},
		{"one host by two names", 3, []Turn{{"h2", 1}, {"h2", 1}}, []string{"h2", "h2", "h2"}, []int{0, 1, 2}, []int{3, 3, 3}, []string{"h2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Deal(c.ranks, c.turns, hosts)
			var used []string
			for _, h := range p.Hosts {
				used = append(used, h.Name)
			}
			if !slices.Equal(used, c.used) {
				t.Errorf("hosts %q, want %q", used, c.used)
			}
			for i, r := range p.Ranks {
				if r.Rank != i || r.Host != c.on[i] || r.LocalRank != c.local[i] || r.LocalSize != c.sizes[i] || p.Hosts[r.Node].Name != r.Host {
					t.Errorf("rank %d: %+v, want local rank %d of %d on %s", i, r, c.local[i], c.sizes[i], c.on[i])
				}
			}
			if len(p.Ranks) != c.ranks {
				t.Errorf("%d ranks, want %d", len(p.Ranks), c.ranks)
			}
		})
	}
}
