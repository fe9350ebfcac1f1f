package launcher

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// placed is an attempt of four ranks on two hosts.
func placed() job.Attempt {
	return job.Attempt{
		Run: "calm-otter", Number: 2, CheckpointDir: "/ckpt", ResumeFrom: "/ckpt/step-20",
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

func TestGangEnv(t *testing.T) {
	a := placed()
	want := []string{
		"WORLD_SIZE=4", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500",
		"GANGRUN_RUN=calm-otter", "GANGRUN_ATTEMPT=2", "GANGRUN_CHECKPOINT_DIR=/ckpt", "GANGRUN_RESUME_FROM=/ckpt/step-20",
	}
	if got := gangEnv(a, rendezvous{"10.0.0.1", 29500}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// On this machine only, Gloo is told the interface. The variables are set,
	// and empty, where there is nothing to resume from.
	a.CheckpointDir, a.ResumeFrom, a.Number = "", "", 0
	want = []string{
		"WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
		"GANGRUN_RUN=calm-otter", "GANGRUN_ATTEMPT=0", "GANGRUN_CHECKPOINT_DIR=", "GANGRUN_RESUME_FROM=", "GLOO_SOCKET_IFNAME=lo",
	}
	if got := gangEnv(a, rendezvous{"127.0.0.1", 1}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRankEnv(t *testing.T) {
	a := placed()
	want := []string{"RANK=1", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "NODE_RANK=0", "GROUP_RANK=0", "GANGRUN_RANK=1"}
	if got := rankEnv(a, a.Placement.Ranks[1]); !slices.Equal(got, want) {
		t.Errorf("without GPUs: got %q, want %q", got, want)
	}
	// What the user set comes last, in order, whatever it replaces.
	a.Env = map[string]string{"ZED": "a=b c", "RANK": "mine", "CUDA_VISIBLE_DEVICES": "", "MASTER_PORT": "1"}
	want = []string{
		"RANK=3", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "NODE_RANK=1", "GROUP_RANK=1", "GANGRUN_RANK=3",
		"CUDA_VISIBLE_DEVICES=", "MASTER_PORT=1", "RANK=mine", "ZED=a=b c",
	}
	if got := rankEnv(a, a.Placement.Ranks[3]); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRankArgs(t *testing.T) {
	a := placed()
	a.Command = []string{
		"./train", "--rank={{.Rank}}/{{.Rank}}", "{{.Host}}", "{{.CheckpointDir}}/x", "{{.ResumeFrom}}", "",
		"{{ .Rank }}", "{{.Other}}", "{{rank}}", "{.Rank}", "{{{{.Rank}}}}", "$HOME `id` *",
	}
	before := slices.Clone(a.Command)
	want := []string{
		"./train", "--rank=3/3", "h2", "/ckpt/x", "/ckpt/step-20", "",
		"{{ .Rank }}", "{{.Other}}", "{{rank}}", "{.Rank}", "{{3}}", "$HOME `id` *",
	}
	if got := rankArgs(a, a.Placement.Ranks[3]); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !slices.Equal(a.Command, before) {
		t.Errorf("the command has changed to %q", a.Command)
	}
	// What a template stands for is not looked at again.
	a.CheckpointDir = "/{{.Rank}}"
	if got := rankArgs(a, a.Placement.Ranks[0])[3]; got != "/{{.Rank}}/x" {
		t.Errorf("got %q, want /{{.Rank}}/x", got)
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
	if got := gangName(a); got != "calm-otter/2" {
		t.Errorf("got %q", got)
	}
}

// TestRankHints: the NICs near to a rank's GPUs are what it is told to send
// through, on several hosts.
func TestRankHints(t *testing.T) {
	host := job.Host{Name: "h1", Devices: []job.Device{{UUID: "GPU-a"}, {UUID: "GPU-b"}}, NICs: []job.NIC{
		{Name: "mlx5_0", Links: []job.Link{job.LinkPIX, job.LinkSYS}},
		{Name: "mlx5_1", Links: []job.Link{job.LinkSYS, job.LinkPIX}},
	}}
	bare := host
	bare.NICs = []job.NIC{{Name: "NIC0", Links: []job.Link{job.LinkPIX, job.LinkPIX}}}
	for _, c := range []struct {
		name    string
		hosts   []job.Host
		devices []string
		want    []string
	}{
		{"one GPU", []job.Host{host, host}, []string{"GPU-b"}, []string{"NCCL_IB_HCA=mlx5_1", "UCX_NET_DEVICES=mlx5_1:1"}},
		{"two GPUs", []job.Host{host, host}, []string{"GPU-a", "GPU-b"}, []string{"NCCL_IB_HCA=mlx5_0,mlx5_1", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1"}},
		{"one host", []job.Host{host}, []string{"GPU-b"}, nil},
		{"no GPU", []job.Host{host, host}, nil, nil},
		{"NICs without names", []job.Host{bare, bare}, []string{"GPU-b"}, nil},
		{"no NICs", []job.Host{{Name: "h1"}, {Name: "h2"}}, []string{"GPU-b"}, nil},
	} {
		a := job.Attempt{Placement: job.Placement{Hosts: c.hosts, Ranks: make([]job.Rank, 2)}}
		if got := rankHints(a, job.Rank{Devices: c.devices}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
