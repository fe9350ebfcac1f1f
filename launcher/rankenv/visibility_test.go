package rankenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestGPUEnv checks which GPUs ranks on several hosts see. They see all GPUs of the gang on their host, in blocks in
// the order of LOCAL_RANK, or only their own.
func TestGPUEnv(t *testing.T) {
	// Each word is a rank, "HOST/LOCAL_RANK:GPU,GPU", in rank order.
	for name, c := range map[string]struct {
		ranks      string
		gang, rank string // CUDA_VISIBLE_DEVICES of each rank; "-" if it is not set
	}{
		"one a rank":              {"h1/0:a h1/1:b h2/0:c h2/1:d", "a,b a,b c,d c,d", "a b c d"},
		"two a rank":              {"h1/0:a,b h1/1:c,d h2/0:e,f", "a,b,c,d a,b,c,d e,f", "a,b c,d e,f"},
		"three a rank, unordered": {"h1/0:c,a,b h1/1:f,d,e", "c,a,b,f,d,e c,a,b,f,d,e", "c,a,b f,d,e"},
		"hosts take turns":        {"h1/0:a h2/0:b h1/1:c h2/1:d", "a,c b,d a,c b,d", "a b c d"},
		"local ranks turned":      {"h1/1:a h1/0:b", "b,a b,a", "a b"},
		"uneven hosts":            {"h1/0:a h1/1:b h1/2:c h2/0:d", "a,b,c a,b,c a,b,c d", "a b c d"},
		"same names elsewhere":    {"h1/0:GPU0 h1/1:GPU1 h2/0:GPU0 h2/1:GPU1", "GPU0,GPU1 GPU0,GPU1 GPU0,GPU1 GPU0,GPU1", "GPU0 GPU1 GPU0 GPU1"},
		"one rank":                {"h1/0:a", "a", "a"},
		"none":                    {"h1/0: h1/1:", "- -", "- -"},
		"some have none":          {"h1/0:a h1/1: h1/2:b", "a,b - a,b", "a - b"},
		"MIG instances":           {"h1/0:MIG-1 h1/1:MIG-2 h2/0:GPU-3 h2/1:GPU-4", "MIG-1 MIG-2 GPU-3,GPU-4 GPU-3,GPU-4", "MIG-1 MIG-2 GPU-3 GPU-4"},
		"an instance beside GPUs": {"h1/0:GPU-1 h1/1:MIG-GPU-2/1/0", "GPU-1 MIG-GPU-2/1/0", "GPU-1 MIG-GPU-2/1/0"},
	} {
		t.Run(name, func(t *testing.T) {
			a := attemptOf(c.ranks)
			for v, want := range map[job.GPUVisibility]string{"": c.gang, job.GPUVisibilityGang: c.gang, job.GPUVisibilityRank: c.rank} {
				for i, want := range strings.Fields(want) {
					r := a.Placement.Ranks[i]
					var wantEnv []string
					if want != "-" {
						wantEnv = []string{"CUDA_VISIBLE_DEVICES=" + want, "GANGRUN_GPUS=" + strings.Join(r.Devices, ",")}
					}
					if got := GPUs(v, a.Placement.On(r.Host), r); !slices.Equal(got, wantEnv) {
						t.Errorf("visibility %q, rank %d: got %q, want %q", v, i, got, wantEnv)
					}
				}
			}
		})
	}
}

// attemptOf returns an attempt for a text with "HOST/LOCAL_RANK:GPU,GPU" for each rank.
func attemptOf(ranks string) (a job.Attempt) {
	for i, word := range strings.Fields(ranks) {
		place, gpus, _ := strings.Cut(word, ":")
		host, local, _ := strings.Cut(place, "/")
		r := job.Rank{Rank: i, Host: host, LocalRank: int(local[0] - '0')}
		if gpus != "" {
			r.Devices = strings.Split(gpus, ",")
		}
		a.Placement.Ranks = append(a.Placement.Ranks, r)
	}
	return a
}

func TestSharedView(t *testing.T) {
	own := map[string]string{"CUDA_VISIBLE_DEVICES": "0"}
	for name, c := range map[string]struct {
		ranks  string
		change func(a *job.Attempt)
		want   bool
	}{
		"two ranks":           {"h1/0:a h1/1:b", nil, true},
		"of another host":     {"h1/0:a h2/0:b", nil, false},
		"own only":            {"h1/0:a h1/1:b", func(a *job.Attempt) { a.GPUVisibility = job.GPUVisibilityRank }, false},
		"instances":           {"h1/0:MIG-a h1/1:MIG-b", nil, false},
		"one of two has GPUs": {"h1/0:a h1/1:", nil, false},
		"the user's":          {"h1/0:a h1/1:b", func(a *job.Attempt) { a.Env = own }, false},
		"the user's for one program": {"h1/0:a h1/1:b", func(a *job.Attempt) {
			a.Apps = []job.App{{Ranks: 1}, {Ranks: 1, Env: own}}
		}, false},
	} {
		a := attemptOf(c.ranks)
		if c.change != nil {
			c.change(&a)
		}
		if got := SharedView(a, "h1"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
