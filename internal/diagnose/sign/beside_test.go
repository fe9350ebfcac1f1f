package sign_test

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

const noGPU = "\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: no GPU found"

// TestBeside checks that lines of other software near a sign tell what the sign means.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a warning tells why there is no GPU": {"UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)." + noGPU, "driver-too-old"},
		"nothing tells why":                   {"step 0" + noGPU, "no-gpu"},
		"libfabric before an MPI call":        {"libfabric:8:1::cxi:cq:cxip_cq_cb():624 Send operation failed: LE_TIMEOUT on n1 cxi0\nAbort(6) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Wait: Other MPI error, error stack:", "unreachable"},
		"the stack of an MPI call":            {"Abort(6) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Send: Other MPI error, error stack:\nPMPI_Send(157)......: MPI_Send(buf=0x1) failed\nMPIDI_OFI_send_normal(255): OFI tagged send failed (ofi_send.h:255:MPIDI_OFI_send_normal:Network is unreachable)", "unreachable"},
		"an MPI call alone":                   {"Abort(6) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Send: Invalid rank, error stack:\nPMPI_Send(157)......: MPI_Send(buf=0x1) failed", "mpi-call"},
		"a help text with its reason":         {"A call to mkdir was unable to create the desired directory:\n\n  Directory: /x\n  Error:     No space left on device\n\n----------------------------", "no-space"},
		"a note before an exception":          {"┌ Error: Failed to start\n│    No space left on device\nERROR: LoadError: start failed\nStacktrace:\n [1] f\nin expression starting at /x.jl:3", "no-space"},
		"a supervisor":                        {"step 41\ndeadman: step counter has been 41 for 1800 s\ndeadman: killing the job", "no-progress"},
		"a supervisor that only looks":        {"step 41\ndeadman: step counter has been 41 for 1800 s\nstep 42", ""},
		"a message of Java that goes on":      {"Exception in thread \"main\" x.JobException: stage failed\nReason: Container released on a *lost* node\n\tat x.Main.main(Main.java:2)", "host-reported-lost"},
	} {
		found := sign.Find(sign.Text{Lines: strings.Split(c.text, "\n"), Reason: func(int) job.Reason { return job.ReasonNone }}, rules.Standard())
		got := ""
		if n := len(found.Signs); n > 0 {
			got = found.Signs[n-1].Rule.Signature
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestLastWords checks that the last words of a rank count if they tell the category.
func TestLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"step 3\nsolver: tile map lists 6 ranks, but the job has 3":           "program-input",
		"step 3\nnf90_create: out/x.nc: No such file or directory\nctl_stop.": "missing-output-directory",
		"step 3\nwarning: restart file 'a' not found":                         "",
		"cannot open x.dat: No such file or directory\nstep 4":                "",
		"step 3\nI am done here":                                              "",
	} {
		got := ""
		if g := sign.LastWords(strings.Split(text, "\n"), rules.Standard()); g != nil {
			got = g.Rule.Signature
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
