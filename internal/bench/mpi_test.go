package main

import (
	"slices"
	"strings"
	"testing"
)

func TestRivals(t *testing.T) {
	fake := &fakeHosts{dir: "/d"}
	for _, test := range []struct {
		name string
		argv []string
		want string // the end of the command line
	}{
		{"hydra, one host", hydra(fake, 1, 8, "prog"), "mpiexec.hydra -n 8 prog"},
		{"hydra, hosts", hydra(fake, 3, 8, "prog"), " -launcher-exec /d/plain-agent -hosts localhost,127.0.1.2,127.0.1.3 -ppn 3 -n 8 prog"},
		{"mpirun, one host", mpirun(fake, 1, 2, "prog"), " --oversubscribe -n 2 prog"},
		{"mpirun, hosts", mpirun(fake, 2, 8, "prog"), " --mca plm_rsh_agent /d/openmpi-agent --host localhost:4,127.0.1.2:4 -n 8 prog"},
	} {
		if got := strings.Join(test.argv, " "); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want it to end in %q", test.name, got, test.want)
		}
	}
}

func TestParseGangs(t *testing.T) {
	g, err := parseGangs("openmpi", "2,32", "1,4")
	if err != nil || !slices.Equal(g.ranks, []int{2, 32}) || !slices.Equal(g.hosts, []int{1, 4}) || !slices.Equal(g.mpis, []string{"openmpi"}) {
		t.Errorf("%v, %v", g, err)
	}
	for _, bad := range [][3]string{{"lam", "2", "1"}, {"mpich", "1", "1"}, {"mpich", "2", "0"}, {"mpich", "2,", "1"}, {"mpich", "2", "251"}} {
		if g, err := parseGangs(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q: %v, want an error", bad, g)
		}
	}
}
