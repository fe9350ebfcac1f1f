package launcher

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// placed returns an attempt of four ranks on two hosts.
func placed() job.Attempt {
	return job.Attempt{
		Run: "calm-otter", Number: 2, Retries: 5, CheckpointDir: "/ckpt", ResumeFrom: "/ckpt/step-20",
		Placement: job.Placement{
			Ranks: []job.Rank{
				{Rank: 0, Host: "h1", LocalRank: 0, LocalSize: 2, Node: 0},
				{Rank: 1, Host: "h1", LocalRank: 1, LocalSize: 2, Node: 0},
				{Rank: 2, Host: "h2", LocalRank: 0, LocalSize: 2, Node: 1, Devices: []string{"GPU-b"}},
				{Rank: 3, Host: "h2", LocalRank: 1, LocalSize: 2, Node: 1, Devices: []string{"GPU-a", "GPU-c"}},
			},
			Hosts: []job.Host{{Name: "h1"}, {Name: "h2"}},
		},
	}
}

func TestShows(t *testing.T) {
	ranks := placed().Placement.Ranks
	for _, c := range []struct {
		mode  job.OutputMode
		ranks []job.Rank
		want  []int32
	}{
		{job.OutputFirst, ranks, []int32{0}},
		{job.OutputFirst, ranks[1:], nil},
		{job.OutputAll, ranks, []int32{0, 1, 2, 3}},
		{job.OutputAll, ranks[2:], []int32{2, 3}},
		{job.OutputFailed, ranks, nil},
		{job.OutputNone, ranks, nil},
		{job.OutputAll, nil, nil},
	} {
		if got := shows(c.mode, c.ranks); !slices.Equal(got, c.want) {
			t.Errorf("%s of %d ranks: got %d, want %d", c.mode, len(c.ranks), got, c.want)
		}
	}
}

func TestGangName(t *testing.T) {
	a := placed()
	if got := a.GangName(); got != "calm-otter/2" {
		t.Errorf("got %q", got)
	}
}
