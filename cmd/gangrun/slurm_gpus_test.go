package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmGPUs is the number of GPUs of each node.
const slurmGPUs = 4

// slurmDriver is a gangrun-nvml that reports those GPUs of its node whose device files it may open. There is no
// driver, so opening a file fails even if it is allowed, but then not with EPERM.
const slurmDriver = `#!/usr/bin/python3
import glob, json, os, sys
if len(sys.argv) > 1:  # self-check, or events until the end of standard input
    sys.exit(sys.argv[1] == "events" and sys.stdin.read() and 0)
host, devices = os.uname().nodename, []
for path in sorted(glob.glob(%q)):
    try:
        os.close(os.open(path, os.O_RDWR))
    except PermissionError:
        continue
    except OSError:
        pass
    minor = int(path[-1])
    devices.append({"index": len(devices), "uuid": f"GPU-{host}-{minor}", "pci": f"0000:{minor:02x}:00.0", "name": "Simulated", "memory_total": 1 << 30, "memory_free": 1 << 30})
print(json.dumps({"source": "gangrun-nvml", "driver": "1", "devices": devices}))
`

// slurmGPUJob is a job on two nodes. A step prints which GPUs Slurm has granted on each node. The ranks print which
// GPUs they have, and end when the file "go" exists.
const slurmGPUJob = `srun -N2 -n2 --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME $SLURM_STEP_GPUS > granted.%[1]s.$SLURM_PROCID'
gangrun run -n 4 --preflight off --mpi none -- sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $GANGRUN_GPUS > got.%[1]s.$RANK~ && mv got.%[1]s.$RANK~ got.%[1]s.$RANK
until [ -e go ]; do sleep 0.05; done'`

// TestSlurmGPUs runs two jobs that share the GPUs of two nodes. On each node, a job has different GPUs. Each rank must
// have its own GPU, and Slurm must have granted that GPU to the job on that node.
func TestSlurmGPUs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ending  string
		options []slurm.Option
	}{
		"the job can open its own devices": {"two jobs share the GPUs of two nodes", nil},
		"the job can open all devices":     {"two jobs share the GPUs of two nodes, and may open all devices", []slurm.Option{slurm.AllDevices()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSlurmGPUs(t, c.ending, c.options...)
		})
	}
}

// fakeGPUs puts gangrun and a simulated driver into the directory.
func (b *slurmBed) fakeGPUs() {
	b.t.Helper()
	if b.dir != b.Dir("bob") {
		if err := os.Link(filepath.Join(b.Dir("bob"), "gangrun"), filepath.Join(b.dir, "gangrun")); err != nil {
			b.t.Fatal(err)
		}
	}
	writeProgram(b.t, filepath.Join(b.dir, "gangrun-nvml"), fmt.Appendf(nil, slurmDriver, filepath.Join(b.Devices(), "nvidia*")))
	writeProgram(b.t, filepath.Join(b.dir, "nvidia-smi"), []byte("#!/bin/sh\nexit 9\n")) // as on a node without a driver
}

// words returns the words of each file in bob's directory whose name matches a pattern.
func (b *slurmBed) words(pattern string) (words [][]string) {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.dir, pattern))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.t.Fatal(err)
		}
		words = append(words, strings.Fields(string(text)))
	}
	return words
}

func testSlurmGPUs(t *testing.T, ending string, options ...slurm.Option) {
	b := newSlurmBed(t, 2, append(options, slurm.GPUs(slurmGPUs))...)
	b.fakeGPUs()
	first := b.submit("until [[ -e other ]]; do sleep 0.05; done", "-N1", "-w", "h1", "--gres=gpu:1")
	if _, err := b.Await(first, patience, func(j slurm.Job) bool { return j.State() == "RUNNING" }); err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, name := range []string{"a", "b"} {
		id := b.submit(fmt.Sprintf(slurmGPUJob, name), "-N2", "--gres=gpu:2")
		jobs = append(jobs, id)
		if j, err := b.Await(id, patience, func(j slurm.Job) bool { return len(b.words("got."+name+".[0-9]")) == 4 || j.Ended() }); err != nil || j.Ended() {
			_, out := b.ended(id)
			t.Fatalf("%v\n%s", err, out)
		}
		if name == "a" {
			writeProgram(t, filepath.Join(b.dir, "other"), nil)
			b.ended(first)
		}
	}
	writeProgram(t, filepath.Join(b.dir, "go"), nil)
	for _, id := range jobs {
		if j, out := b.ended(id); j.State() != "COMPLETED" {
			t.Errorf("%s: %s", j.State(), out)
		}
	}
	granted, got := map[string]string{}, map[string][]string{} // by job and node
	for _, name := range []string{"a", "b"} {
		for _, words := range b.words("granted." + name + ".*") {
			var gpus []string
			for gpu := range strings.SplitSeq(words[1], ",") {
				gpus = append(gpus, "GPU-"+words[0]+"-"+gpu)
			}
			granted[name+" "+words[0]] = strings.Join(gpus, ",")
		}
	}
	for _, name := range []string{"a", "b"} {
		for _, words := range b.words("got." + name + ".[0-9]") {
			key := name + " " + words[0]
			if len(words) != 3 || words[1] != granted[key] {
				t.Errorf("job %s has %s there, and a rank sees %q", name, granted[key], words)
				continue
			}
			got[key] = append(got[key], words[2])
		}
	}
	if len(granted) != 4 || granted["a h1"][len("GPU-h1-"):] == granted["a h2"][len("GPU-h2-"):] {
		t.Fatalf("Slurm has granted %v, want other GPUs on h1 than on h2", granted)
	}
	for key, gpus := range granted {
		if have := strings.Join(slices.Sorted(slices.Values(got[key])), ","); have != gpus {
			t.Errorf("%s: the ranks have %q, want %q", key, have, gpus)
		}
	}
	b.ending(ending, "each rank has a GPU of its own job", "0")
}
