package inventory

import (
	"io/fs"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestGranted(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		files map[string]string
		want  Grant
		err   string
	}{
		"nothing":               {},
		"empty":                 {env: map[string]string{"CUDA_VISIBLE_DEVICES": ""}, want: Grant{Source: "CUDA_VISIBLE_DEVICES"}},
		"indices":               {env: map[string]string{"CUDA_VISIBLE_DEVICES": "3, 1,03"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES", GPUs: []string{"3", "1"}}},
		"up to the first wrong": {env: map[string]string{"CUDA_VISIBLE_DEVICES": "0,-1,2"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES", GPUs: []string{"0"}}},
		"old Slurm's word":      {env: map[string]string{"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES"}},
		"UUIDs":                 {env: map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-8932f937,MIG-1"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES", GPUs: []string{"GPU-8932f937", "MIG-1"}}},
		"Slurm and CUDA":        {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "4", "CUDA_VISIBLE_DEVICES": "0"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES", Kind: Slurm, GPUs: []string{"0"}}},
		"Slurm's job":           {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,2-3"}, want: Grant{Source: "SLURM_JOB_GPUS", Kind: Slurm, GPUs: []string{"0", "2", "3"}}},
		"Slurm's step":          {env: map[string]string{"SLURM_JOBID": "7", "SLURM_JOB_GPUS": "0,1", "SLURM_STEP_GPUS": "1"}, want: Grant{Source: "SLURM_STEP_GPUS", Kind: Slurm, GPUs: []string{"1"}}},
		"Slurm without":         {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": " "}, want: Grant{Source: "slurm", Kind: Slurm}},
		"Slurm, rubbish":        {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2-1"}, err: `SLURM_JOB_GPUS: is "2-1": "2-1" is no index of a GPU, and no range of them`},
		"Slurm, huge":           {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-99999999"}, err: `SLURM_JOB_GPUS: is "0-99999999": "0-99999999" is no index of a GPU, and no range of them`},
		"PBS":                   {env: map[string]string{"PBS_JOBID": "1"}, want: Grant{Kind: PBS}},
		"PBS with a file":       {env: map[string]string{"PBS_JOBID": "1", "PBS_GPUFILE": "/g"}, files: map[string]string{"/g": "n1-gpu2\nn2-gpu0\nN1.lab-gpu0\nrubbish\n"}, want: Grant{Source: "PBS_GPUFILE", Kind: PBS, GPUs: []string{"2", "0"}}},
		"PBS without its file":  {env: map[string]string{"PBS_JOBID": "1", "PBS_GPUFILE": "/g"}, err: `PBS_GPUFILE: its file "/g" cannot be read: file does not exist`},
		"Grid Engine":           {env: map[string]string{"JOB_ID": "1", "SGE_ROOT": "/s"}, want: Grant{Kind: GridEngine}},
		"Grid Engine with ids":  {env: map[string]string{"JOB_ID": "1", "SGE_ROOT": "/s", "SGE_HGR_gpu": "3 1"}, want: Grant{Source: "SGE_HGR_gpu", Kind: GridEngine, GPUs: []string{"3", "1"}}},
		"Grid Engine, names":    {env: map[string]string{"JOB_ID": "1", "SGE_ROOT": "/s", "SGE_HGR_gpu": "gpu0 gpu1"}, err: `SGE_HGR_gpu: is "gpu0 gpu1": "gpu0" is no index of a GPU, and no range of them`},
		"Grid Engine and CUDA":  {env: map[string]string{"JOB_ID": "1", "SGE_ROOT": "/s", "SGE_HGR_gpu": "3", "CUDA_VISIBLE_DEVICES": "1"}, want: Grant{Source: "CUDA_VISIBLE_DEVICES", Kind: GridEngine, GPUs: []string{"1"}}},
		"OAR":                   {env: map[string]string{"OAR_JOB_ID": "1"}, want: Grant{Kind: OAR}},
		"Flux":                  {env: map[string]string{"FLUX_JOB_ID": "f"}, want: Grant{Kind: Flux}},
		"LSF":                   {env: map[string]string{"LSB_JOBID": "1"}, want: Grant{Kind: LSF}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Granted(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, func(path string) ([]byte, error) {
				if text, ok := c.files[path]; ok {
					return []byte(text), nil
				}
				return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}, "n1")
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("got error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestGrantApply(t *testing.T) {
	host := func() job.Host {
		return job.Host{
			Devices: []job.Device{{UUID: "GPU-a", Index: 0}, {UUID: "GPU-b", Index: 1}, {UUID: "MIG-b1", GPU: "GPU-b", Index: 1}, {UUID: "MIG-b2", GPU: "GPU-b", Index: 1}, {UUID: "GPU-c", Index: 2}},
			Links: [][]job.Link{
				{"", "NV1", "NV1", "NV1", "NV2"}, {"NV1", "", "", "", "NV3"}, {"NV1", "", "", "", "NV3"}, {"NV1", "", "", "", "NV3"}, {"NV2", "NV3", "NV3", "NV3", ""},
			},
			NICs: []job.NIC{{Name: "mlx5_0", Links: []job.Link{"PIX", "SYS", "SYS", "SYS", "PHB"}}},
		}
	}
	for name, c := range map[string]struct {
		grant Grant
		want  []string
		left  []int
		nic   []job.Link
	}{
		"all":                   {Grant{}, []string{"GPU-a", "GPU-b", "MIG-b1", "MIG-b2", "GPU-c"}, nil, host().NICs[0].Links},
		"none":                  {Grant{Source: "slurm"}, nil, []int{0, 1, 2}, nil},
		"by index":              {Grant{Source: "x", GPUs: []string{"2", "0"}}, []string{"GPU-a", "GPU-c"}, []int{1}, []job.Link{"PIX", "PHB"}},
		"a GPU with its parts":  {Grant{Source: "x", GPUs: []string{"GPU-b"}}, []string{"GPU-b", "MIG-b1", "MIG-b2"}, []int{0, 2}, []job.Link{"SYS", "SYS", "SYS"}},
		"a part, not its twin":  {Grant{Source: "x", GPUs: []string{"MIG-b1"}}, []string{"GPU-b", "MIG-b1"}, []int{0, 1, 2}, []job.Link{"SYS", "SYS"}},
		"Slurm renumbered":      {Grant{Source: "SLURM_JOB_GPUS", GPUs: []string{"4", "5", "6"}}, []string{"GPU-a", "GPU-b", "MIG-b1", "MIG-b2", "GPU-c"}, nil, host().NICs[0].Links},
		"Slurm, not renumbered": {Grant{Source: "SLURM_JOB_GPUS", GPUs: []string{"2"}}, []string{"GPU-c"}, []int{0, 1}, []job.Link{"PHB"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := host()
			left := c.grant.Apply(&h)
			var got []string
			for _, d := range h.Devices {
				got = append(got, d.UUID)
			}
			if !slices.Equal(got, c.want) || !slices.Equal(left, c.left) || !slices.Equal(h.NICs[0].Links, c.nic) {
				t.Errorf("got %v, left %v, NIC %v", got, left, h.NICs[0].Links)
			}
			if len(h.Links) != len(c.want) || len(h.Links) > 0 && len(h.Links[0]) != len(c.want) {
				t.Errorf("links are %v", h.Links)
			}
		})
	}
}

func FuzzGranted(f *testing.F) {
	f.Add("0,1", "0-3")
	f.Add("GPU-1,", "")
	f.Fuzz(func(t *testing.T, cuda, slurm string) {
		for _, env := range []map[string]string{{"CUDA_VISIBLE_DEVICES": cuda}, {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": slurm}} {
			g, err := Granted(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, nil, "h")
			if err == nil && !g.Bounded() {
				t.Errorf("%v: not bounded", env)
			}
			h := job.Host{Devices: []job.Device{{UUID: "GPU-1"}, {UUID: "GPU-2", Index: 1}}}
			left := g.Apply(&h)
			if err == nil && len(left)+len(h.Devices) != 2 {
				t.Errorf("%v: left %v, has %v", env, left, h.Devices)
			}
		}
	})
}
