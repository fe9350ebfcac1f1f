package checkpoint

import "testing"

func TestBookkeeping(t *testing.T) {
	for _, name := range []string{"train.log", "events.out.tfevents.1700000000.host", "config.yaml", "metrics.csv", "zero_to_fp32.py",
		"latest", "checkpoint", "_SUCCESS", "commit_success.txt", "README", "slurm-123.txt", "rank-0003.out"} {
		if !bookkeeping(name, 20) {
			t.Errorf("%q is not taken for bookkeeping", name)
		}
	}
	for _, name := range []string{"ckpt-20.pt", "state", "success-rate.pt", "model.bin", "readable.npz", "checkpoints.npz"} {
		if bookkeeping(name, 20) {
			t.Errorf("%q is taken for bookkeeping", name)
		}
	}
	if bookkeeping("checkpoint", 1<<20) {
		t.Error("a big file named checkpoint is taken for a pointer")
	}
}
