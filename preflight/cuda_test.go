package preflight

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestCUDA(t *testing.T) {
	const (
		tooOld   = `cuda error cuda-version h1: the NVIDIA driver 470.256.02 is too old for CUDA 12.4 (libcudart.so.12), which needs 525.60.13`
		doubtful = `cuda warning  h1: the NVIDIA driver 470.256.02 is too old for CUDA 12.4, if the program uses libcudart.so.12: it needs 525.60.13`
		mixed    = `cuda error cuda-version h1: programs load "/compat/libcuda.so", which is of the NVIDIA driver 525.60.13, but the host has the newer driver 570.10: CUDA refuses that`
	)
	for _, c := range []struct {
		name string
		gpus int
		fact job.CUDAFact
		want string
	}{
		{"the driver of the release", 1, job.CUDAFact{Driver: "550.54.15", Runtime: "12.4", Used: true}, ""},
		{"minor-version compatibility", 1, job.CUDAFact{Driver: "525.60.13", Runtime: "12.9", Used: true}, ""},
		{"a newer driver", 1, job.CUDAFact{Driver: "580.95.05", Runtime: "9.2", Used: true}, ""},
		{"too old", 1, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4", Used: true}, tooOld},
		{"too old, and perhaps not needed", -1, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4", Used: true}, doubtful},
		{"too old, and perhaps not used", 1, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4"}, doubtful},
		{"too old, without GPUs", 0, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4", Used: true}, ""},
		{"one release older than minor versions are compatible", 1, job.CUDAFact{Driver: "418.39", Runtime: "10.2", Used: true},
			`cuda error cuda-version h1: the NVIDIA driver 418.39 is too old for CUDA 10.2 (libcudart.so.12), which needs 440.33`},
		{"a release that is not known", 1, job.CUDAFact{Driver: "470.256.02", Runtime: "99.0", Used: true}, ""},
		{"forward compatibility", 1, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4", Used: true, Compat: "550.54.15"}, ""},
		{"forward compatibility that does not suffice", 1, job.CUDAFact{Driver: "470.256.02", Runtime: "12.4", Used: true, Compat: "510.85.02"}, tooOld},
		{"forward compatibility with a newer driver", 1, job.CUDAFact{Driver: "570.10", Runtime: "12.0", Used: true, Compat: "525.60.13", CompatFirst: true}, mixed},
		{"forward compatibility that is not loaded", 1, job.CUDAFact{Driver: "570.10", Runtime: "12.0", Used: true, Compat: "525.60.13"}, ""},
	} {
		s, facts := testSpec(), soundFacts(1)
		c.fact.From, c.fact.CompatPath = "libcudart.so.12", "/compat/libcuda.so"
		s.GPUs, facts[0].CUDA = c.gpus, &c.fact
		if have := said(Static(s, facts)); have != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, have, c.want)
		}
	}
}
