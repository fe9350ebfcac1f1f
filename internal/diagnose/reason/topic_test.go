package reason_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/reason"
)

// TestAbout checks that the subject of a message is found if the message gives no reason of the operating system.
func TestAbout(t *testing.T) {
	for text, want := range map[string]string{
		"cannot use port 29500: taken by another job":                "address-in-use",
		"only 3 MB left on /scratch, need 812 MB":                    "no-space",
		"group quota of proj7 is exceeded":                           "disk-quota",
		"/scratch/out is mounted read-only":                          "read-only",
		"user ana is not authorized to read dataset d7":              "permission-denied",
		"device memory exhausted while growing the neighbour list":   "cuda-out-of-memory",
		"failed to allocate 4.1 GB on GPU 2":                         "cuda-out-of-memory",
		"could not allocate 18.2 GB for the k-space grid":            "native-out-of-memory",
		"heartbeat from host n12 lost for 90 s":                      "host-reported-lost",
		"lustre: OST0004 evicted this client":                        "input-output-error",
		"cannot restart from chk.00040: header magic mismatch":       "checkpoint-exception",
		"could not create plots/u.png":                               "missing-output-directory",
		"residual 1.2e+31 at iteration 40":                           "solution-diverged",
		"invariant violated: weights sum to 0.93":                    "c-assertion",
		"sample sheet has no column 'lane'":                          "program-input",
		"the number of ranks (6) is not a power of two":              "program-input",
		"time step failed due to NaN in flux":                        "solution-diverged",
		"solver stopped, Inf or NaN norm":                            "solution-diverged",
		"unable to load the RCCL library":                            "linker",
		"could not open /opt/x/libhwloc.so.15":                       "linker",
		"cannot find entry nu in dictionary transport":               "program-input",
		"64 parts for 32 elements; use fewer ranks":                  "program-input",
		"cannot find a stable step":                                  "",
		"particle 881 left the domain":                               "",
		"chain stuck: acceptance rate 0.000 over the last 200 draws": "",
		"residual 1.2e-31 at iteration 40":                           "",
	} {
		if got := reason.About(text, true); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if got := reason.About("sample sheet has no column 'lane'", false); got != "" {
		t.Errorf("the words of an exception: got %q", got)
	}
}
