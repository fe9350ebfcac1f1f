package measure

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

func TestSpeeds(t *testing.T) {
	checkpoints, logs := t.TempDir(), t.TempDir()
	m := Measurer{Host: "h1", Memory: 64 << 20}
	speeds := m.Speeds(t.Context(), job.Measure{
		Kinds:         []job.SpeedKind{job.SpeedCPU, job.SpeedMemory, job.SpeedCheckpoint, job.SpeedLog, job.SpeedLink},
		CheckpointDir: checkpoints, LogDir: logs,
	})
	of := map[job.SpeedKind][]string{}
	for _, s := range speeds {
		if s.Host != "h1" || s.Value <= 0 || s.Error != "" || slices.Contains(of[s.Kind], s.Of) {
			t.Errorf("got %+v", s)
		}
		of[s.Kind] = append(of[s.Kind], s.Of)
	}
	if n := len(of[job.SpeedCPU]); n == 0 || n > mostCores || !strings.HasPrefix(of[job.SpeedCPU][0], "core ") {
		t.Errorf("cores %q", of[job.SpeedCPU])
	}
	if len(of[job.SpeedMemory]) == 0 || !slices.Equal(of[job.SpeedCheckpoint], []string{checkpoints}) || !slices.Equal(of[job.SpeedLog], []string{logs}) || len(of) != 4 {
		t.Errorf("measured %v", of)
	}
	for _, dir := range []string{checkpoints, logs} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := m.Speeds(ended, job.Measure{Kinds: job.SpeedKinds(), LogDir: logs}); len(got) > 0 {
		t.Errorf("after the end: %+v", got)
	}
	// Without a directory, there must be no speed of a disk.
	if got := m.Speeds(t.Context(), job.Measure{Kinds: []job.SpeedKind{job.SpeedCheckpoint}}); len(got) > 0 {
		t.Errorf("without a directory: %+v", got)
	}
}

func TestFileSystem(t *testing.T) {
	for magic, want := range map[int64]string{0xef53: "ext4", 0x6969: "nfs", 0x01021994: "tmpfs", 0x0bd00bd0: "lustre", 0x65735546: "fuse", 0x1234: "0x1234"} {
		if got := fileSystem(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
	if got := disk(t.Context(), "/dev/shm"); len(got) != 1 || got[0].Model != "tmpfs" || got[0].Value <= 0 {
		t.Errorf("/dev/shm: %+v", got)
	}
}

// TestDiskFails checks that the speed of a disk that cannot be written has an error that says why.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"):                              "no such file",
		agenttest.WriteFile(t, filepath.Join(dir, "f"), "", 0o600): "not a directory",
		"/sys": "no|too little", // the error of a file system without room
	} {
		got := disk(t.Context(), path)
		if len(got) != 1 || got[0].Of != path || got[0].Value != 0 || got[0].Error == "" {
			t.Errorf("%s: got %+v", path, got)
			continue
		}
		if !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(got[0].Error, w) }) {
			t.Errorf("%s: got %q, want %q", path, got[0].Error, want)
		}
	}
}

func TestNodes(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const dir = "sys/devices/system/node/"
	got := nodes(fstest.MapFS{
		dir + "node0/cpulist": file("0-7,16-23\n"), dir + "node1/cpulist": file("8-15\n"),
		dir + "node2/cpulist": file("\n"), // this node has no CPUs
		dir + "online":        file("0-2\n"),
	})
	if !slices.Equal(got, []node{{"NUMA node 0", "0-7,16-23"}, {"NUMA node 1", "8-15"}}) {
		t.Errorf("got %+v", got)
	}
	if got := nodes(fstest.MapFS{}); !slices.Equal(got, []node{{"memory", ""}}) {
		t.Errorf("of a kernel without NUMA: %+v", got)
	}
}

// fakeTorch replaces torch. Its GPU 2 fails, and its GPU 1 is four times slower than the others.
const fakeTorch = `import time
class Tensor:
    def __init__(self, device): self.device = device
    def copy_(self, other, non_blocking=False): work(self.device, .001)
    def pin_memory(self): return self
def work(device, seconds):
    time.sleep(seconds * (4 if device == "cuda:1" else 1))
def ones(size, dtype=None, device="cpu"):
    if device == "cuda:2": raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nmore")
    return Tensor(device)
def ones_like(t): return Tensor(t.device)
empty_like = ones_like
def mm(a, b, out): work(a.device, .002)
float16 = uint8 = None
class P:
    def __init__(self, i): self.name, self.uuid = "NVIDIA H100", "0000000%d-1111" % i
class device:
    def __init__(self, i): pass
    def __enter__(self): return self
    def __exit__(self, *a): pass
class cuda:
    device = device
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 4)
    synchronize = staticmethod(lambda d: None)
    get_device_properties = staticmethod(P)
`

func TestGPUs(t *testing.T) {
	python, err := process.LookPath("python3", "/", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	torch := agenttest.WriteFile(t, filepath.Join(dir, "torch.py"), fakeTorch, 0o644)
	smi := filepath.Join(dir, "nvidia-smi")
	agenttest.WriteFile(t, smi, "#!/bin/sh\necho GPU-00000003-1111\n", 0o755) // another program uses GPU 3
	env := environ.Overlay(os.Environ(), []string{"PYTHONPATH=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"})
	m := Measurer{Host: "h1", Env: env, Children: processtest.New(t)}
	ask := job.Measure{Kinds: []job.SpeedKind{job.SpeedMatmul, job.SpeedGPUCopy, job.SpeedUpload}, Python: python}
	value := map[string]map[job.SpeedKind]float64{}
	failed := map[string]string{}
	for _, s := range m.Speeds(t.Context(), ask) {
		if s.Host != "h1" || s.Model != "NVIDIA H100" || (s.Value > 0) == (s.Error != "") {
			t.Errorf("got %+v", s)
		}
		if s.Error != "" {
			failed[s.Of] = s.Error
			continue
		}
		if value[s.Of] == nil {
			value[s.Of] = map[job.SpeedKind]float64{}
		}
		value[s.Of][s.Kind] = s.Value
	}
	if len(value) != 2 || len(value["GPU 0"]) != 3 || len(value["GPU 1"]) != 3 {
		t.Fatalf("measured %v, failed %v", value, failed)
	}
	for kind, most := range map[job.SpeedKind]float64{job.SpeedMatmul: 2 * 4096 * 4096 * 4096 / .008, job.SpeedGPUCopy: 64 << 20 / .004, job.SpeedUpload: 64 << 20 / .004} {
		if slow := value["GPU 1"][kind]; slow > most || value["GPU 0"][kind] > 4*most {
			t.Errorf("%s: %v of the slow GPU, %v of another, want at most %v of the slow one", kind, slow, value["GPU 0"][kind], most)
		}
	}
	if failed["GPU 2"] != "RuntimeError: CUDA error: uncorrectable ECC error encountered" || failed["GPU 3"] != "it is in use" || len(failed) != 2 {
		t.Errorf("failed %v", failed)
	}
	// Without a path, the first python3 in PATH is used, and its error is reported.
	ask.Python = ""
	if got := m.Speeds(t.Context(), ask); len(got) != 8 {
		t.Errorf("with python3 of PATH: %+v", got)
	}
	for want, change := range map[string]func(){
		"it is not known which GPUs are in use": func() { agenttest.WriteFile(t, smi, "#!/bin/sh\nexit 9\n", 0o755) },
		"torch finds no GPU": func() {
			agenttest.WriteFile(t, torch, strings.ReplaceAll(fakeTorch, "lambda: True", "lambda: False"), 0o644)
		},
		"torch cannot be imported": func() { agenttest.WriteFile(t, torch, "raise ImportError('libcudart.so')", 0o644) },
		"status 0x":                func() { agenttest.WriteFile(t, torch, "import os; os._exit(3)", 0o644) },
	} {
		change()
		if got := m.Speeds(t.Context(), ask); len(got) != 1 || got[0].Value != 0 || !strings.Contains(got[0].Error, want) || got[0].Of != "GPUs" {
			t.Errorf("got %+v, want %q", got, want)
		}
		agenttest.WriteFile(t, torch, fakeTorch, 0o644)
		agenttest.WriteFile(t, smi, "#!/bin/sh\n", 0o755)
	}
	m.Env = []string{"PATH=" + t.TempDir()}
	if got := m.Speeds(t.Context(), ask); len(got) > 0 {
		t.Errorf("without Python: %+v", got)
	}
}
