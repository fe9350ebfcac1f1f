package rankenv

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// placed returns an attempt of four ranks on two hosts.
func placed() job.Attempt {
	return job.Attempt{
		Run: "calm-otter", Number: 2, Retries: 5, CheckpointDir: "/ckpt", ResumeFrom: "/ckpt/step-20", StopFile: "/ckpt/.stop",
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
		"WORLD_SIZE=4", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "GROUP_WORLD_SIZE=2", "ROLE_NAME=default", "ROLE_WORLD_SIZE=4",
		"TORCHELASTIC_RUN_ID=calm-otter", "TORCHELASTIC_RESTART_COUNT=1", "TORCHELASTIC_MAX_RESTARTS=5", "TORCHELASTIC_USE_AGENT_STORE=False",
		"GANGRUN_RUN=calm-otter", "GANGRUN_ATTEMPT=2", "GANGRUN_CHECKPOINT_DIR=/ckpt", "GANGRUN_RESUME_FROM=/ckpt/step-20", "GANGRUN_STOP_FILE=/ckpt/.stop",
	}
	if got := Gang(a, Rendezvous{"10.0.0.1", 29500}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// If the gang is on this machine only, Gloo gets the loopback interface. If there is nothing to resume from, the
	// variables are set but empty. A trial, whose number is 0, has no earlier attempts.
	a.CheckpointDir, a.ResumeFrom, a.StopFile, a.Number = "", "", "", 0
	want = []string{
		"WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1", "GROUP_WORLD_SIZE=2", "ROLE_NAME=default", "ROLE_WORLD_SIZE=4",
		"TORCHELASTIC_RUN_ID=calm-otter", "TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_MAX_RESTARTS=5", "TORCHELASTIC_USE_AGENT_STORE=False",
		"GANGRUN_RUN=calm-otter", "GANGRUN_ATTEMPT=0", "GANGRUN_CHECKPOINT_DIR=", "GANGRUN_RESUME_FROM=", "GANGRUN_STOP_FILE=", "GLOO_SOCKET_IFNAME=lo",
	}
	if got := Gang(a, Rendezvous{"127.0.0.1", 1}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRankEnv(t *testing.T) {
	a := placed()
	want := []string{"RANK=1", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "NODE_RANK=0", "GROUP_RANK=0", "ROLE_RANK=1", "GANGRUN_RANK=1"}
	if got := Rank(a, a.Placement.Ranks[1]); !slices.Equal(got, want) {
		t.Errorf("without GPUs: got %q, want %q", got, want)
	}
	// The user's variables come last, in order, whatever they replace.
	a.Env = map[string]string{"ZED": "a=b c", "RANK": "mine", "CUDA_VISIBLE_DEVICES": "", "MASTER_PORT": "1"}
	want = []string{
		"RANK=3", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "NODE_RANK=1", "GROUP_RANK=1", "ROLE_RANK=3", "GANGRUN_RANK=3",
		"CUDA_VISIBLE_DEVICES=", "MASTER_PORT=1", "RANK=mine", "ZED=a=b c",
	}
	if got := Rank(a, a.Placement.Ranks[3]); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestCompat checks the variables of Open MPI's mpirun and of hydra, if they are requested. The user's variables take
// precedence.
func TestCompat(t *testing.T) {
	openmpi := []string{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_NODE_RANK=1"}
	mpich := []string{"PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"}
	for compat, want := range map[job.EnvCompat][]string{
		"": nil, job.EnvCompatNone: nil, job.EnvCompatOpenMPI: openmpi, job.EnvCompatMPICH: mpich, job.EnvCompatAll: slices.Concat(openmpi, mpich),
	} {
		a := placed()
		plain := Rank(a, a.Placement.Ranks[3])
		a.EnvCompat, a.Env = compat, map[string]string{"PMI_RANK": "mine"}
		if got, want := Rank(a, a.Placement.Ranks[3]), slices.Concat(plain, want, []string{"PMI_RANK=mine"}); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", compat, got, want)
		}
	}
}

// TestRankArgs checks that each rank gets its own arguments, also if there are several programs.
func TestRankArgs(t *testing.T) {
	a := placed()
	a.Command = []string{"./train", "{{.Rank}}/{{.LocalRank}}@{{.Host}}", "{{.CheckpointDir}}/x", "{{if .ResumeFrom}}--resume={{.ResumeFrom}}{{end}}", "", "{{ x }}"}
	want := []string{"./train", "3/1@h2", "/ckpt/x", "--resume=/ckpt/step-20", "", "{{ x }}"}
	if got, err := Args(a, a.Placement.Ranks[3]); err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	// A value that replaces a template is not expanded again.
	a.CheckpointDir, a.ResumeFrom = "/{{.Rank}}", ""
	want = []string{"./train", "0/0@h1", "/{{.Rank}}/x", "", "{{ x }}"}
	if got, err := Args(a, a.Placement.Ranks[0]); err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	a.Apps = []job.App{{Ranks: 3, Command: []string{"a", "{{.Rank}}"}}, {Ranks: 1, Command: []string{"b", "{{.LocalRank}}"}}}
	if got, err := Args(a, a.Placement.Ranks[3]); err != nil || !slices.Equal(got, []string{"b", "1"}) {
		t.Errorf("of the second program: %q, %v", got, err)
	}
}

// TestInterfaces checks that, in a gang on several hosts, a rank is told to use the NICs that are nearest to its GPUs.
func TestInterfaces(t *testing.T) {
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
		if got := interfacesOf(a, job.Rank{Devices: c.devices}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestThreads checks that ranks that share a machine share its cores, or the part of them that the gang may use. Ranks
// of MPI, and a rank alone on its host, get no number of threads.
func TestThreads(t *testing.T) {
	gpus := func(n int) []job.Device { return make([]job.Device, n) }
	for _, c := range []struct {
		name   string
		change func(*job.Attempt)
		spread bool
		want   string // the result for rank 3
	}{
		{"two hosts", func(*job.Attempt) {}, true, "16"},
		{"two simulated hosts", func(*job.Attempt) {}, false, "8"},
		{"MPI", func(a *job.Attempt) { a.NoMPI = false }, true, ""},
		{"cores that are not known", func(a *job.Attempt) { a.Placement.Hosts[1].Cores = 0 }, true, ""},
		{"fewer cores than ranks", func(a *job.Attempt) { a.Placement.Hosts[1].Cores = 1 }, true, "1"},
		{"one rank on the host", func(a *job.Attempt) { a.Placement.Ranks[2].Host, a.Placement.Ranks[2].Node = "h1", 0 }, true, ""},
		{"three GPUs of six", func(a *job.Attempt) { a.Placement.Hosts[1].Devices = gpus(6) }, true, "8"},
		{"all GPUs", func(a *job.Attempt) { a.Placement.Hosts[1].Devices = gpus(3) }, true, "16"},
		{"bound to the same CPUs", func(a *job.Attempt) { a.Placement.Ranks[2].CPUs, a.Placement.Ranks[3].CPUs = "0-7", "0-7" }, true, "4"},
		{"bound to others", func(a *job.Attempt) { a.Placement.Ranks[2].CPUs, a.Placement.Ranks[3].CPUs = "0-7", "8-15,24" }, true, "9"},
		{"bound to more than its share", func(a *job.Attempt) { a.Placement.Ranks[3].CPUs = "0-31" }, true, "16"},
	} {
		a := placed()
		a.NoMPI = true
		a.Placement.Hosts[0].Cores, a.Placement.Hosts[1].Cores = 64, 32
		c.change(&a)
		var want []string
		if c.want != "" {
			want = []string{"OMP_NUM_THREADS=" + c.want}
		}
		if got := threadsOf(a, a.Placement.Ranks[3], c.spread); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

// TestRankHints checks the variables of lowest precedence. Those that torchrun sets, too, have the values of torchrun.
func TestRankHints(t *testing.T) {
	a := placed()
	a.NoMPI, a.Hints = true, []string{"WANDB_MODE=disabled"}
	a.Placement.Hosts[1] = job.Host{Name: "h2", Cores: 4, Interface: "eth1"}
	want := []string{"WANDB_MODE=disabled", "OMP_NUM_THREADS=2", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "GLOO_SOCKET_IFNAME=eth1", "NCCL_SOCKET_IFNAME=eth1", "TP_SOCKET_IFNAME=eth1", "UCX_NET_DEVICES=eth1"}
	if got := Hints(a, a.Placement.Ranks[2], true); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
