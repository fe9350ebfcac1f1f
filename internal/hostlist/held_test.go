package hostlist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/topology/lease/leasetest"
)

// TestMarkHeld checks that the holder of a GPU is named rather than the process that runs on the GPU. Problems of
// other hosts must not be reported for this host.
func TestMarkHeld(t *testing.T) {
	dir := leasetest.Dir(t)
	leasetest.Small(t, dir, "", []string{"GPU0", "GPU1"}, "GPU0")
	leasetest.Small(t, dir, "h1", []string{"GPU1"}, "GPU1")
	if err := os.Mkdir(filepath.Join(dir, "gangrun.aa.order"), 0o777); err != nil {
		t.Fatal(err)
	}
	h := leasetest.Used(leasetest.Host("here", 3), 0, 2)
	findings, err := MarkHeld(t.Context(), &h, nil)
	if err != nil || len(findings) != 0 {
		t.Errorf("%+v, %v", findings, err)
	}
	if got := []string{h.Devices[0].Busy, h.Devices[1].Busy, h.Devices[2].Busy}; !strings.HasPrefix(got[0], "held by run small-GPU0 of ada") || got[1] != "" || got[2] != "used by pid 7" {
		t.Errorf("busy are %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "gangrun.@.gpu.%0A"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if findings, err = MarkHeld(t.Context(), &h, nil); err != nil || len(findings) != 1 || !strings.Contains(findings[0].Text, "cannot be printed") {
		t.Errorf("%+v, %v", findings, err)
	}
}
