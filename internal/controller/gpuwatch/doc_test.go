package gpuwatch

import (
	"os"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestDocument checks that docs/watch.md has every sign and every bucket.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sign := range []job.GPUSign{job.GPUXID, job.GPUECCSingle, job.GPUECCDouble, job.GPUDriverHung, job.GPUShared, job.GPULost, job.GPURemap,
		job.GPUThrottled, job.GPUPCILink, job.GPUNVLink, job.GPURecovery, job.GPUForeign, job.GPUUnwatched} {
		if !strings.Contains(string(data), "\n| `"+string(sign)+"` |") {
			t.Errorf("docs/watch.md has no row for %s", sign)
		}
	}
	for bucket, a := range byBucket {
		_, row, found := strings.Cut(string(data), "\n| `"+string(bucket)+"` |")
		if row, _, _ = strings.Cut(row, "\n"); !found || !strings.Contains(row, "| "+string(a.severity)) {
			t.Errorf("docs/watch.md has no row for %s, of severity %s", bucket, a.severity)
		}
	}
}
