package job

import (
	"cmp"
	"strconv"
	"strings"
)

// CUDAFact is what a program needs of the NVIDIA driver of a host. Versions are as NVIDIA writes them.
type CUDAFact struct {
	Driver string `json:"driver"` // that is loaded, as in "550.54.15"
	// Runtime is the version of the CUDA runtime, as in "12.4". From is where gangrun found the version:
	// a library, a Python package, a path or a variable. Used is true if
	// the program or its Python uses this runtime. It is false if the runtime was only found somewhere in the
	// file system.
	Runtime string `json:"runtime"`
	From    string `json:"from"`
	Used    bool   `json:"used,omitempty"`
	// Compat is the version of the driver whose libcuda is there for forward compatibility; empty if none is.
	// CompatFirst is set if programs load that one because LD_LIBRARY_PATH says so.
	Compat      string `json:"compat,omitempty"`
	CompatPath  string `json:"compat_path,omitempty"`
	CompatFirst bool   `json:"compat_first,omitempty"`
}

// CompareVersions compares versions that are numbers with dots, as cmp.Compare does.
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
