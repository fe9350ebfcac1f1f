package job

import (
	"cmp"
	"strconv"
	"strings"
)

// CUDAFact has the version of a host's NVIDIA driver and the version of its CUDA runtime. The runtime needs a
// driver that is new enough. Versions are as NVIDIA writes them.
type CUDAFact struct {
	Driver string `json:"driver"` // the loaded driver, as in "550.54.15"
	// Runtime is the version of the CUDA runtime, as in "12.4". From is where gangrun found the
	// version: a library, a Python package, a path or a variable. Used is true if the program or its
	// Python uses this runtime. It is false if the runtime was only found somewhere in the file system.
	Runtime string `json:"runtime"`
	From    string `json:"from"`
	Used    bool   `json:"used,omitempty"`
	// Compat is the version of a libcuda that is there for forward compatibility (cuda-compat), and
	// CompatPath its path. Both are empty if there is none. CompatFirst is true if programs load this
	// libcuda, because its directory is in LD_LIBRARY_PATH.
	Compat      string `json:"compat,omitempty"`
	CompatPath  string `json:"compat_path,omitempty"`
	CompatFirst bool   `json:"compat_first,omitempty"`
}

// CompareVersions compares two versions that consist of numbers and dots. It returns -1 if a is older
// than b, 0 if they are equal, and 1 if a is newer.
func CompareVersions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		if c := cmp.Compare(m, n); c != 0 {
			return c
		}
	}
	return 0
}
