package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmEvents is a gangrun-nvml like slurmDriver. The GPUs of the node h2 report an XID and are too hot.
const slurmEvents = `#!/usr/bin/python3
import json, os, select, sys
if sys.argv[1:2] == ["events"]:
    def tell(**event):
        print(json.dumps(event), flush=True)
    while True:
        tell(kind="alive")
        if os.uname().nodename == "h2":
            for uuid in sys.argv[2:]:
                tell(kind="xid", uuid=uuid, xid=63)
                for _ in range(6):
                    tell(kind="sample", uuid=uuid, sample={"utilisation": 90, "sm_clock": 900, "temperature": 91, "throttle": ["hw_thermal_slowdown"]})
            sys.argv[2:] = []
        if select.select([sys.stdin], [], [], 1)[0] and not sys.stdin.buffer.read(1):
            sys.exit(0)
`

// TestSlurmGPUWatch checks that gangrun reports what the driver of another node says about GPUs of the gang, with the
// rank that has the GPU.
func TestSlurmGPUWatch(t *testing.T) {
	t.Parallel()
	b := newSlurmBed(t, 2, slurm.GPUs(slurmGPUs))
	b.fakeGPUs()
	driver := slurmEvents + strings.TrimPrefix(fmt.Sprintf(slurmDriver, filepath.Join(b.Devices(), "nvidia*")), "#!/usr/bin/python3\n")
	if err := os.Remove(filepath.Join(b.dir, "gangrun-nvml")); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(b.dir, "gangrun-nvml"), []byte(driver))
	id := b.submit(`gangrun run -n 2 --preflight off --mpi none -- sh -c 'until grep -q gpu-thrott[l]ed runs/runs/*/journal.jsonl; do sleep 0.05; done'`, "-N2", "-w", "h1,h2", "--gres=gpu:1")
	j, out := b.ended(id)
	if j.State() != "COMPLETED" {
		t.Errorf("%s", j.State())
	}
	for _, want := range []string{
		"gangrun: note: on h2: GPU0 (rank 1): XID 63, ECC page retirement or row remapping recorded (memory of the GPU was broken and is replaced by spare memory at the next reset)",
		"gangrun: warning: on h2: GPU0 (rank 1): its clock has been lowered for 30 s, because it is too hot (hw_thermal_slowdown; 900 MHz, 0 W, 91 °C)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("gangrun did not say %q", want)
		}
	}
	if strings.Contains(out, "on h1: GPU") || t.Failed() {
		t.Errorf("gangrun said\n%s", out)
	}
	b.nothingLeft()
}
