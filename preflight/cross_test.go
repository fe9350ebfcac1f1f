package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// farFacts returns the facts of hosts h1 to hN without any problem. Each host is a machine of its own.
func farFacts(n int) []job.Facts {
	facts := soundFacts(n)
	var all []string
	for _, f := range facts {
		all = append(all, f.Host)
	}
	for i := range facts {
		f := &facts[i]
		f.Skew, f.SkewWithin = time.Duration(i+1)*time.Millisecond, time.Millisecond
		f.Shared = &job.SharedFact{Sees: all}
		f.Versions = []job.VersionFact{
			{Kind: job.VersionDriver, Name: "the NVIDIA driver", Version: "550.54"},
			{Kind: job.VersionLibrary, Name: "libnccl.so.2", Version: "2.18.5"},
			{Kind: job.VersionPython, Name: "torch", Version: "2.3.0"},
		}
		for j := range n {
			if j != i {
				f.Reach = append(f.Reach, job.ReachFact{To: fmt.Sprintf("h%d", j+1), Address: fmt.Sprintf("10.0.0.%d", j+1), Time: 200 * time.Microsecond})
			}
		}
	}
	return facts
}

// block makes connections fail. In ways, "1>2" is the connection from h1 to h2.
func block(why string, ways ...string) func([]job.Facts) {
	return func(facts []job.Facts) {
		for _, way := range ways {
			var from, to int
			if _, err := fmt.Sscanf(way, "%d>%d", &from, &to); err != nil {
				panic(err)
			}
			for i, r := range facts[from-1].Reach {
				if r.To == fmt.Sprintf("h%d", to) {
					facts[from-1].Reach[i].Error, facts[from-1].Reach[i].Time = why, 0
				}
			}
		}
	}
}

// groups makes a checkpoint directory for each group of hosts. A list such as "h1 h2" is one group.
func groups(lists ...string) func([]job.Facts) {
	return func(facts []job.Facts) {
		for i := range facts {
			for _, list := range lists {
				if hosts := strings.Fields(list); slices.Contains(hosts, facts[i].Host) {
					facts[i].Shared.Sees = hosts
				}
			}
		}
	}
}

func version(i int, v string) func(*job.Facts) {
	return func(f *job.Facts) { f.Versions = slices.Clone(f.Versions); f.Versions[i].Version = v }
}

func both(changes ...func([]job.Facts)) func([]job.Facts) {
	return func(facts []job.Facts) {
		for _, c := range changes {
			c(facts)
		}
	}
}

var crossCases = []struct {
	name   string
	hosts  int
	change func([]job.Facts)
	want   []string // check severity category host: text
	matrix []string
}{
	{"all is well", 4, both(), nil, nil},
	{"a host alone", 1, both(), nil, nil},

	{"clock: one is off", 4, on(func(f *job.Facts) { f.Skew = -2 * time.Minute }, 3),
		[]string{"clock warning  h3: the clock of h3 is 120 s behind those of the other hosts"},
		[]string{"host       clock", "h3         -120.00 s!", "others: 3  well"}},
	{"clock: two are off, each by its own", 5, both(on(func(f *job.Facts) { f.Skew = 90 * time.Second }, 1), on(func(f *job.Facts) { f.Skew = -3 * time.Second }, 5)),
		[]string{
			"clock warning  h1: the clock of h1 is 90 s ahead of those of the other hosts",
			"clock warning  h5: the clock of h5 is 3.0 s behind those of the other hosts"},
		[]string{"host       clock", "h1         +90.00 s!", "h5         -3.00 s!", "others: 3  +0.00 s"}},
	{"clock: one against one", 2, on(func(f *job.Facts) { f.Skew = 5*time.Second + time.Millisecond }, 2),
		[]string{"clock warning  : the clocks of h1 and h2 do not agree: h2's is 5.0 s ahead of h1's"},
		[]string{"host  clock", "h1    ±0.00 s!", "h2    +5.00 s!"}},
	{"clock: this machine's own", 3, on(func(f *job.Facts) { f.Skew += time.Hour }),
		[]string{"clock warning  : the clocks of all hosts agree, and are 60 min ahead of that of the machine that gangrun runs on"}, nil},
	{"clock: off by days", 3, on(func(f *job.Facts) { f.Skew = -49*time.Hour + time.Minute }, 2),
		[]string{"clock warning  h2: the clock of h2 is 49 h behind those of the other hosts"}, nil},
	{"clock: less than a second", 2, on(func(f *job.Facts) { f.Skew = 990 * time.Millisecond }, 2), nil, nil},
	{"clock: not known well enough", 2, on(func(f *job.Facts) { f.Skew, f.SkewWithin = 1500*time.Millisecond, 600*time.Millisecond }, 2), nil, nil},

	{"reach: one way", 4, block("connection refused", "2>3"),
		[]string{"reach error network-error h2: h2 cannot connect to h3 at 10.0.0.3: connection refused; h3 can connect to h2"},
		[]string{"host       connections", "h2         to 2/3 in 0.2 ms, from 3/3!", "h3         to 3/3 in 0.2 ms, from 2/3!", "others: 2  to 3/3 in 0.2 ms, from 3/3"}},
	{"reach: a pair", 4, block("no answer within 5s", "2>3", "3>2"),
		[]string{"reach error network-error : h2 and h3 cannot connect to each other at 10.0.0.2 and 10.0.0.3: no answer within 5s"},
		[]string{"host       connections", "h2         to 2/3 in 0.2 ms, from 2/3!", "h3         to 2/3 in 0.2 ms, from 2/3!", "others: 2  to 3/3 in 0.2 ms, from 3/3"}},
	{"reach: two pairs, each its own way", 4, both(block("connection refused", "1>2", "4>3"), block("no route to host", "2>1", "3>4")),
		[]string{
			"reach error network-error : h1 and h2 cannot connect to each other at 10.0.0.1 and 10.0.0.2: connection refused, and the other way no route to host",
			"reach error network-error : h3 and h4 cannot connect to each other at 10.0.0.3 and 10.0.0.4: no route to host, and the other way connection refused"}, nil},
	{"reach: a host that opens no port", 4, block("it could not open a port: too many open files", "1>4", "2>4", "3>4"),
		[]string{"reach error network-error h4: h4 (10.0.0.4) is cut off from other hosts: h1, h2 and h3 cannot connect to it: it could not open a port: too many open files"},
		[]string{"host       connections", "h4         to 3/3 in 0.2 ms, from 0/3!", "others: 3  to 2/3 in 0.2 ms, from 3/3"}},
	{"reach: a host that nobody reaches, and a pair", 5,
		both(block("no answer within 5s", "1>2", "2>1", "2>3", "3>2", "2>4", "4>2", "2>5", "5>2"), block("connection refused", "4>5")),
		[]string{
			"reach error network-error h2: h2 (10.0.0.2) is cut off from other hosts: it cannot connect to h1, h3, h4 and h5: no answer within 5s; h1, h3, h4 and h5 cannot connect to it: no answer within 5s",
			"reach error network-error h4: h4 cannot connect to h5 at 10.0.0.5: connection refused; h5 can connect to h4"}, nil},
	{"reach: most of it is broken", 12,
		block("no route to host", "1>2", "3>4", "5>6", "7>8", "9>10", "10>9", "11>12"),
		[]string{
			"reach error network-error h1: h1 cannot connect to h2 at 10.0.0.2: no route to host; h2 can connect to h1",
			"reach error network-error h3: h3 cannot connect to h4 at 10.0.0.4: no route to host; h4 can connect to h3",
			"reach error network-error h5: h5 cannot connect to h6 at 10.0.0.6: no route to host; h6 can connect to h5",
			"reach error network-error h7: h7 cannot connect to h8 at 10.0.0.8: no route to host; h8 can connect to h7",
			"reach error network-error : 3 of 132 connections between hosts fail, too, such as that from h9 to h10 at 10.0.0.10: no route to host (on h9, h10, h11 and h12: 4 of 12 hosts)"},
		[]string{
			"host  connections", "h1    to 10/11 in 0.2 ms, from 11/11!", "h2    to 11/11 in 0.2 ms, from 10/11!", "h3    to 10/11 in 0.2 ms, from 11/11!",
			"h4    to 11/11 in 0.2 ms, from 10/11!", "h5    to 10/11 in 0.2 ms, from 11/11!", "h6    to 11/11 in 0.2 ms, from 10/11!",
			"h7    to 10/11 in 0.2 ms, from 11/11!", "h8    to 11/11 in 0.2 ms, from 10/11!", "h9    to 10/11 in 0.2 ms, from 10/11!",
			"h10   to 10/11 in 0.2 ms, from 10/11!", "h11   to 10/11 in 0.2 ms, from 11/11!", "h12   to 11/11 in 0.2 ms, from 10/11!"}},
	{"reach: two hosts", 2, block("no answer within 5s", "1>2", "2>1"),
		[]string{"reach error network-error : h1 and h2 cannot connect to each other at 10.0.0.1 and 10.0.0.2: no answer within 5s"}, nil},

	{"checkpoints: one has its own", 4, groups("h1 h2 h4", "h3"),
		[]string{`checkpoint-shared error output-error h3: the checkpoint directory "/c" is not the same one on every host: h1, h2 and h4 share one; h3 has its own`},
		[]string{"host       checkpoints", "h3         its own!", "others: 3  shared by 3"}},
	{"checkpoints: one against one", 2, groups("h1", "h2"),
		[]string{`checkpoint-shared error output-error : the checkpoint directory "/c" is not the same one on every host: h1 and h2 have one each (on all 2 hosts)`},
		[]string{"host  checkpoints", "h1    its own!", "h2    its own!"}},
	{"checkpoints: two against two", 4, groups("h1 h3", "h2 h4"),
		[]string{`checkpoint-shared error output-error : the checkpoint directory "/c" is not the same one on every host: h1 and h3 share one; h2 and h4 share one (on all 4 hosts)`}, nil},
	{"checkpoints: what is seen one way alone is not shared", 3, on(func(f *job.Facts) { f.Shared.Sees = []string{"h3"} }, 3),
		[]string{`checkpoint-shared error output-error h3: the checkpoint directory "/c" is not the same one on every host: h1 and h2 share one; h3 has its own`}, nil},
	{"checkpoints: nothing is known of a host that cannot use it", 3,
		both(groups("h1 h2"), on(func(f *job.Facts) {
			f.Check, f.Shared = &job.DirectoryFact{PathFact: broken("/c", job.ErrorReadOnly, "read-only file system"), Step: "write"}, nil
		}, 3)),
		[]string{`checkpoint-dir error output-error h3: the checkpoint directory "/c" is on a file system that is mounted read-only: gangrun could not write a file in it`},
		[]string{"host       checkpoints", "h3         read-only!", "others: 2  shared"}},

	{"versions: one host has others", 4, both(on(version(1, "2.19.3"), 2), on(version(2, "2.4.0"), 2)),
		[]string{"versions warning  h2: not of the same version on h2 as on the other 3 hosts: libnccl.so.2 (2.19.3 instead of 2.18.5) and torch (2.4.0 instead of 2.3.0)"},
		[]string{"host       libraries       packages", "h2         1 of 1 differ!  1 of 1 differ!", "others: 3  1 same          1 same"}},
	{"versions: one against one", 2, on(version(0, "560.1"), 2),
		[]string{"versions warning  : not of the same version on h1 and h2: the NVIDIA driver (550.54 on h1; 560.1 on h2)"},
		[]string{"host  driver", "h1    550.54!", "h2    560.1!"}},
	{"versions: two odd ones, each its own", 5, both(on(version(0, "560.1"), 2), on(version(0, "565.2"), 4)),
		[]string{"versions warning  : not of the same version on h2 and h4 as on the other 3 hosts: the NVIDIA driver (560.1 on h2; 565.2 on h4; else 550.54)"}, nil},
	{"versions: no driver, no package", 3, on(func(f *job.Facts) { f.Versions = f.Versions[1:2] }, 1),
		[]string{"versions warning  h1: not of the same version on h1 as on the other 2 hosts: the NVIDIA driver (none instead of 550.54)"},
		[]string{"host       driver", "h1         none!", "others: 2  550.54"}},
	{"versions: another program needs other libraries", 3,
		both(on(version(1, "2.19.3"), 2), on(func(f *job.Facts) { f.Program.SHA256 = "bbbb" }, 2), on(func(f *job.Facts) { f.Script = nil })),
		[]string{`program-same error launch-error h2: the program "/bin/train" is not the same file on h2 as on the other 2 hosts`},
		[]string{"host       program  libraries", "h2         bbbb!    1 of 1 differ!", "others: 2  aaaa     1 same"}},

	{"inputs: one host lacks one", 4, on(func(f *job.Facts) { f.Inputs[0] = broken("/d/a.csv", job.ErrorMissing, "x") }, 4),
		[]string{`inputs error incorrect-inputs h4: input "/d/a.csv" does not exist`},
		[]string{"host       inputs", "h4         1/2!", "others: 3  2/2"}},
	{"program: missing on one host", 3, on(func(f *job.Facts) { f.Program = job.ProgramFact{PathFact: broken("/bin/train", job.ErrorMissing, "x")} }, 1),
		[]string{`program error launch-error h1: the program "/bin/train" does not exist or is not on PATH`},
		[]string{"host       program", "h1         missing!", "others: 2  aaaa"}},
}

// cross has the checks that compare hosts with each other.
var cross = []string{"clock", "reach", "checkpoint-shared", "versions"}

func TestCross(t *testing.T) {
	said := make(map[string]bool) // text of warnings and errors alike
	for _, tt := range crossCases {
		t.Run(tt.name, func(t *testing.T) {
			facts := farFacts(tt.hosts)
			tt.change(facts)
			var have []string
			for _, f := range Static(testSpec(), facts) {
				have = append(have, line(f))
				said[f.Text] = true
				checkFinding(t, f)
			}
			if !slices.Equal(have, tt.want) {
				t.Errorf("have:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(tt.want, "\n"))
			}
			m := Compare(testSpec(), facts)
			if told := m.Lines(false); tt.matrix != nil && !slices.Equal(told, tt.matrix) {
				t.Errorf("matrix:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(tt.matrix, "\n"))
			}
			// If a finding is about some of the hosts only, the matrix marks them as odd, and nothing else.
			some := slices.ContainsFunc(tt.want, func(l string) bool { return !strings.Contains(l, "of all hosts agree") })
			if m.Odd() != some {
				t.Errorf("odd is %v with findings %q", m.Odd(), tt.want)
			}
		})
	}
	for _, code := range cross {
		for _, p := range lookup(code).Problems {
			_, begin, _ := strings.Cut(p.Text, "} ") // the part that no value changes
			if before, _, _ := strings.Cut(p.Text, "{"); len(before) > 0 {
				begin = before
			}
			begin, _, _ = strings.Cut(begin, "{")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(text string) bool { return strings.Contains(text, begin) }) {
				t.Errorf("no case shows %s", p.Signature)
			}
		}
	}
}

// TestDriverWithoutGPUs: a job without GPUs may run on hosts with different drivers.
func TestDriverWithoutGPUs(t *testing.T) {
	facts := farFacts(2)
	version(0, "560.1")(&facts[1])
	spec := testSpec()
	spec.GPUs = 0
	if have := Static(spec, facts); len(have) > 0 || Compare(spec, facts).Odd() {
		t.Errorf("have %+v", have)
	}
}

func TestMatrixWhole(t *testing.T) {
	facts := farFacts(3)
	block("connection refused", "1>2")(facts)
	facts[2].Reach = facts[2].Reach[:1] // there was no time for h2
	want := []string{
		"host  clock    connections                  workdir  program  script  driver  libraries  packages  inputs  checkpoints",
		"h1    ±0.00 s  to 1/2 in 0.2 ms, from 2/2!  ok       aaaa     5555    550.54  1 same     1 same    2/2     shared",
		"h2    +0.00 s  to 2/2 in 0.2 ms, from 0/1!  ok       aaaa     5555    550.54  1 same     1 same    2/2     shared",
		"h3    +0.00 s  to 1/1 in 0.2 ms, from 2/2   ok       aaaa     5555    550.54  1 same     1 same    2/2     shared",
		"",
		"from, to  h1      h2      h3",
		"h1        -       fails!  0.2 ms",
		"h2        0.2 ms  -       0.2 ms",
		"h3        0.2 ms  ?       -",
	}
	if have := Compare(testSpec(), facts).Lines(true); !slices.Equal(have, want) {
		t.Errorf("have:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestMatrixOneMachine: for simulated hosts on one machine, the matrix leaves out the facts in which they
// cannot differ.
func TestMatrixOneMachine(t *testing.T) {
	m := Compare(testSpec(), soundFacts(2))
	if want := []string{"workdir", "program", "script", "inputs", "checkpoints"}; !slices.Equal(m.Columns, want) || m.Odd() {
		t.Errorf("columns %q, want %q; odd is %v", m.Columns, want, m.Odd())
	}
}
