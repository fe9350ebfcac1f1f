package controller

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestUnused checks that the first gang of a run notes which hosts and GPUs of its batch job it does not use. Later
// gangs of the run must not note it again.
func TestUnused(t *testing.T) {
	gpus := func(ids ...string) (all []job.Device) {
		for _, id := range ids {
			all = append(all, job.Device{UUID: id})
		}
		return all
	}
	hosts := []job.Host{{Name: "h2", Devices: gpus("a", "b")}, {Name: "h1", Devices: gpus("a", "b")}, {Name: "h3"}}
	for name, c := range map[string]struct {
		ranks []job.Rank
		want  []string
	}{
		"all":           {[]job.Rank{{Host: "h1", Devices: []string{"a", "b"}}, {Host: "h2", Devices: []string{"b", "a"}}, {Host: "h3"}}, nil},
		"without GPUs":  {[]job.Rank{{Host: "h1"}, {Host: "h2"}, {Host: "h3"}}, nil},
		"one host":      {[]job.Rank{{Host: "h1", Devices: []string{"a", "b"}}}, []string{"2 of the 3 hosts of Slurm job 7 have no rank of this gang: h2, h3"}},
		"half the GPUs": {[]job.Rank{{Host: "h1", Devices: []string{"a"}}, {Host: "h2", Devices: []string{"a"}}, {Host: "h3"}}, []string{"this gang uses 2 of the 4 GPUs that Slurm job 7 has on its hosts"}},
	} {
		a := allocationOf(job.Spec{}, &job.BatchJob{ID: "7"})
		var got []string
		for range 2 {
			a.note(job.Placement{Ranks: c.ranks}, hosts, func(e job.Event) { got = append(got, e.Text) })
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if a := allocationOf(job.Spec{Hosts: "h1"}, &job.BatchJob{ID: "7"}); a.job != "" {
		t.Error("a job that names its hosts has no allocation")
	}
	if a := allocationOf(job.Spec{}, nil); a.job != "" {
		t.Error("outside of batch jobs there is no allocation")
	}
}
