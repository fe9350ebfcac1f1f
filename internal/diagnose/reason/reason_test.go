package reason_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/reason"
)

// TestOf checks that a reason is found in the words of every runtime.
func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		`Error: ENOSPC: no space left on device, write`:                                                         "no-space",
		`called Result::unwrap() on an Err value: Os { code: 28, kind: StorageFull, message: "No space left" }`: "no-space",
		`write(fd): errno = 28`: "no-space",
		`SystemError: flushing file "out/a.nc": Disk quota exceeded`:        "disk-quota",
		`java.io.IOException: Input/output error`:                           "io-error",
		`pread failed with rc=-5`:                                           "io-error",
		`read of chunk 9 failed (os error 121)`:                             "input-output-error",
		`fread /proj/x.bin: Stale file handle`:                              "stale-handle",
		`fopen failed, errno 116`:                                           "stale-handle",
		`java.nio.file.ReadOnlyFileSystemException`:                         "read-only",
		`java.nio.file.AccessDeniedException: /data/x`:                      "permission-denied",
		`Cannot create output stream (errno=13)`:                            "permission-denied",
		`open failed, iostat = 13`:                                          "permission-denied",
		`NetCDF: Permission denied`:                                         "permission-denied",
		`SystemError: opening file "/etc/x": Operation not permitted`:       "permission-denied",
		`listen tcp :8080: bind: address already in use`:                    "address-in-use",
		`Error: listen EADDRINUSE :::8080`:                                  "address-in-use",
		`java.net.UnknownHostException: data.local`:                         "name-resolution",
		`getaddrinfo ENOTFOUND data.local`:                                  "name-resolution",
		`IOError: read: connection reset by peer (ECONNRESET)`:              "peer-closed",
		`Os { code: 111, kind: ConnectionRefused }`:                         "connection-refused",
		`mmap of 9 GiB failed: Cannot allocate memory`:                      "native-out-of-memory",
		`java.nio.file.NoSuchFileException: mesh/part.3`:                    "missing-file",
		`open forcing.nc: no such file or directory`:                        "missing-file",
		`SystemError: opening file "mesh.h5": No such file or directory`:    "missing-file",
		`cannot read restart.bin: error -2`:                                 "missing-file",
		`java.nio.file.NoSuchFileException: could not write results/part.3`: "missing-output-directory",
		`nf90_create: /scratch/x/rst_0007.nc: No such file or directory`:    "missing-output-directory",
		`creating out/7/summary.csv: ENOENT`:                                "missing-output-directory",
		`Expected 28 columns but found 30 in row 13`:                        "",
		`solver returned 13`:                                                "",
		`ERROR in EXPERIMENT 2`:                                             "",
		`energy error: 5`:                                                   "",
	} {
		if got := reason.Of(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestOfGPU checks that GPU errors are found in programs' own messages by number, by name and by their meaning.
func TestOfGPU(t *testing.T) {
	for text, want := range map[string]string{
		`amrex::Abort::5::CUDA error 719 in file Foo.H line 3`:                     "cuda-launch-failure",
		`CUDA error at step.cu:88 code=700(cudaErrorIllegalAddress) "cudaSync(s)"`: "cuda-illegal-access",
		`GPUassert: misaligned address kernel.cu 45`:                               "cuda-illegal-access",
		`hipMalloc failed: hipErrorOutOfMemory`:                                    "cuda-out-of-memory",
		`CUDA runtime returned error code 2`:                                       "cuda-out-of-memory",
		`cudaGetDeviceCount failed with error 100`:                                 "no-gpu",
		`cuInit(0) returned CUDA_ERROR_NOT_INITIALIZED`:                            "cuda-init",
		`cudaMemcpy: uncorrectable ECC error encountered`:                          "cuda-ecc",
		`hip error 98 (hipErrorInvalidDeviceFunction) at fft.hip:12`:               "no-kernel-image",
		`cudaSetDevice(3): invalid device ordinal`:                                 "cuda-ordinal",
		`kernel launch at advance.cu:77 failed: too many resources requested`:      "cuda-launch-failure",
		`out of memory in array of 700 elements`:                                   "",
		`cuda kernel took 700 ms`:                                                  "",
	} {
		if got := reason.OfGPU(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
