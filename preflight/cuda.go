package preflight

import (
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// leastDrivers has the oldest driver for each release of CUDA, the newest release first: see "CUDA Toolkit
// and Corresponding Driver Versions" in NVIDIA's release notes. From CUDA 11 on, one driver is enough for all
// releases of a major version (minor-version compatibility).
var leastDrivers = []struct{ cuda, driver string }{
	{"13.0", "580.65.06"}, {"12.0", "525.60.13"}, {"11.0", "450.80.02"}, {"10.2", "440.33"}, {"10.1", "418.39"},
	{"10.0", "410.48"}, {"9.2", "396.26"}, {"9.1", "390.46"}, {"9.0", "384.81"},
}

// leastDriver returns the oldest driver for a version of the CUDA runtime. It returns "" for a
// major version that is newer than the table.
func leastDriver(runtime string) string {
	major, _, _ := strings.Cut(runtime, ".")
	newest, _, _ := strings.Cut(leastDrivers[0].cuda, ".")
	if job.CompareVersions(major, newest) > 0 {
		return ""
	}
	for _, least := range leastDrivers {
		if job.CompareVersions(runtime, least.cuda) >= 0 {
			return least.driver
		}
	}
	return ""
}

var cudaCheck = Check{
	Code:      "cuda",
	Asks:      "Is the NVIDIA driver of every host new enough for the CUDA runtime of the program?",
	DependsOn: []string{"program"},
	Problems: []Problem{
		{"cuda-driver-old", job.SeverityError, job.CUDAVersion,
			"the NVIDIA driver {driver} is too old for CUDA {runtime} ({from}), which needs {least}",
			"use a program or an image that was built with an older CUDA, or have the administrator update the driver; or, on data centre GPUs only, install NVIDIA's package cuda-compat in the image"},
		{"cuda-driver-doubtful", job.SeverityWarning, "",
			"the NVIDIA driver {driver} is too old for CUDA {runtime}, if the program uses {from}: it needs {least}",
			"use a program or an image that was built with an older CUDA, or have the administrator update the driver"},
		{"cuda-compat-old", job.SeverityError, job.CUDAVersion,
			"programs load {path}, which is of the NVIDIA driver {compat}, but the host has the newer driver {driver}: CUDA refuses that",
			"remove the directory with compat in its name from LD_LIBRARY_PATH, as with -e LD_LIBRARY_PATH=DIRS"},
	},
	Judge: each(func(s job.Spec, f job.Facts) []Hit {
		c := f.CUDA
		if c == nil || s.GPUs == 0 {
			return nil
		}
		if c.CompatFirst && job.CompareVersions(c.Compat, c.Driver) < 0 {
			return []Hit{{Signature: "cuda-compat-old", Path: c.CompatPath, Values: about(c.CompatPath, "compat", c.Compat, "driver", c.Driver)}}
		}
		least := leastDriver(c.Runtime)
		has := c.Driver
		if job.CompareVersions(c.Compat, has) > 0 {
			// NVIDIA's container toolkit or LD_LIBRARY_PATH makes programs load the compatibility library.
			has = c.Compat
		}
		if job.CompareVersions(has, least) >= 0 {
			return nil
		}
		signature := "cuda-driver-doubtful"
		if c.Used && s.GPUs > 0 {
			signature = "cuda-driver-old"
		}
		return []Hit{{Signature: signature, Path: c.From, Values: map[string]string{"driver": c.Driver, "runtime": c.Runtime, "from": c.From, "least": least}}}
	}),
}
