package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hosts []job.Host
		ranks int
		want  string // host:local/size@node of every rank, or the error
	}{
		{"one rank goes to the first host", []job.Host{{Name: "a", Slots: 4}, {Name: "b", Slots: 4}}, 1, "a:0/1@0"},
		{"two ranks go to two hosts", []job.Host{{Name: "a", Slots: 4}, {Name: "b", Slots: 4}}, 2, "a:0/1@0 b:0/1@1"},
		{"in blocks", []job.Host{{Name: "a", Slots: 4}, {Name: "b", Slots: 4}}, 5, "a:0/3@0 a:1/3@0 a:2/3@0 b:0/2@1 b:1/2@1"},
		{"as slots allow", []job.Host{{Name: "a", Slots: 1, Hard: true}, {Name: "b", Slots: 8}}, 4, "a:0/1@0 b:0/3@1 b:1/3@1 b:2/3@1"},
		{"a host without slots is left out", []job.Host{{Name: "a", Hard: true}, {Name: "b", Slots: 1}}, 1, "b:0/1@0"},
		{"beyond soft slots", []job.Host{{Name: "a", Slots: 1, Hard: true}, {Name: "b"}}, 3, "a:0/1@0 b:0/2@1 b:1/2@1"},
		{"not beyond hard ones", []job.Host{{Name: "a", Slots: 1, Hard: true}, {Name: "b", Slots: 1, Hard: true}}, 3,
			"error: the hosts have slots for 2 of 3 ranks"},
		{"no host", nil, 1, "error: there is no host to place a trial on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Spread(tt.hosts, tt.ranks)
			var have []string
			for i, r := range p.Ranks {
				have = append(have, fmt.Sprintf("%s:%d/%d@%d", r.Host, r.LocalRank, r.LocalSize, r.Node))
				if r.Rank != i || p.Hosts[r.Node].Name != r.Host || r.Devices == nil {
					t.Errorf("rank %d is %+v", i, r)
				}
			}
			if err != nil {
				have = append(have, "error: "+err.Error())
			}
			if s := strings.Join(have, " "); s != tt.want {
				t.Errorf("have %s, want %s", s, tt.want)
			}
		})
	}
}
