package probe

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

func TestFindBySMI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		script   string // the script of nvidia-smi; empty if there is none
		gpus     []string
		devices  int
		links    bool
		noDriver bool
		limit    time.Duration // the limit for calls with arguments that begin with hangs; for others it is a minute
		hangs    string
		begins   bool     // a call that hangs first creates the file begun, and is not killed before
		findings []string // "severity: part of the text | part of the hint"
	}{
		{name: "sound", script: smi(h100 + "topo\\ -m) " + topoOf3 + ";;"), devices: 3, links: true},
		{name: "no driver", noDriver: true, findings: []string{"note: no NVIDIA driver | install"}},
		{name: "no driver for GPUs that are there", noDriver: true, gpus: []string{"0000:18:00.0"}, findings: []string{"warning: 1 NVIDIA GPUs (0000:18:00.0) | install"}},
		{name: "driver is not loaded", noDriver: true, findings: []string{"warning: the NVIDIA driver is not loaded | modprobe nvidia"},
			script: "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\"; exit 9"},
		{name: "versions differ", findings: []string{"warning: Driver/library version mismatch | reboot"},
			script: "echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 535.183'; exit 18"},
		{name: "no library", findings: []string{"warning: cannot load NVML | ldconfig"},
			script: "echo \"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\"; exit 12"},
		{name: "no devices", script: "echo 'No devices were found'", findings: []string{"note: finds no GPU | CPUs"}},
		{name: "no devices, and yet there are some", script: "echo 'No devices were found'; exit 6", gpus: []string{"0000:18:00.0", "0000:2a:00.0"},
			findings: []string{"warning: reports no GPU, and yet there are 2 (0000:18:00.0, 0000:2a:00.0) | dmesg"}},
		{name: "a report without devices", script: "echo '<nvidia_smi_log><driver_version>1</driver_version></nvidia_smi_log>'", findings: []string{"note: finds no GPU |"}},
		{name: "rubbish", script: "echo 'hello, world'", findings: []string{`warning: no report: line 1, column 1: "hello, world" | run nvidia-smi`}},
		{name: "nothing at all", script: "exit 0", findings: []string{"warning: nothing where <nvidia_smi_log> | run"}},
		{name: "half a report", script: smi("-q\\ -x) head -c 6000 $D/query-550-h100.xml;;"), findings: []string{"warning: the text ends inside | run"}},
		{name: "half a report and a crash", script: smi("-q\\ -x) head -c 6000 $D/query-550-h100.xml; kill -SEGV $$;;"), findings: []string{"warning: nvidia-smi -q -x crashed (segmentation fault) and said | dmesg"}},
		{name: "unknown failure", script: "echo 'Internal error' >&2; exit 255", findings: []string{`warning: ended with status 255 and said "Internal error" | dmesg`}},
		{name: "corrupt infoROM", script: smi("-q\\ -x) cat $D/query-550-h100.xml; echo 'WARNING: infoROM is corrupted at gpu 0000:2A:00.0'; exit 14;;\ntopo\\ -m) " + topoOf3 + ";;"),
			devices: 3, links: true, findings: []string{"warning: infoROM is corrupted at gpu 0000:2A:00.0 | replaces"}},
		{name: "topo fails", script: smi(h100 + "topo\\ -m) echo 'Failed to run topology matrix' >&2; exit 255;;"), devices: 3,
			findings: []string{`warning: status 255 and said "Failed to run topology matrix" | distances are those of /sys`}},
		{name: "topo is rubbish", script: smi(h100 + "topo\\ -m) echo GPU0; echo GPU0 FOO;;"), devices: 3,
			findings: []string{`warning: line 2, column 6: "FOO" | NVLinks are not known`}},
		{name: "topo is of another number", script: smi(h100 + "topo\\ -m) cat $D/rtx-4-pairs.txt;;"), devices: 3,
			findings: []string{"warning: 4 GPUs, where nvidia-smi -q -x reports 3 | NVLinks"}},
		{name: "a container's share", script: smi(h100 + "topo\\ -m) " + topoOf3 + ";;"), devices: 3, links: true,
			gpus:     []string{"0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0", "0000:5d:00.0"},
			findings: []string{"warning: 3 of 4 GPUs; not 0000:5d:00.0 | container"}},
		{name: "one lost, in the report", script: smi("-q\\ -x) cat $D/query-lost.xml;;"), devices: 2, findings: []string{"warning: GPU 1 (0000:2a:00.0) is lost: GPU is lost | XID 79"}},
		{name: "one lost, instead of a report", gpus: []string{"0000:18:00.0", "0000:2a:00.0"}, devices: 2, findings: []string{"warning: GPU 1 (0000:2a:00.0) is lost: GPU is lost. Reboot | XID 79"},
			script: smi("-q\\ -x) echo 'Unable to determine the device handle for GPU 0000:2A:00.0: GPU is lost.  Reboot the system to recover this GPU' >&2; exit 15;;\n" +
				"-q\\ -x\\ -i\\ 0000:18:00.0) sed '/<gpu id=\"00000000:2A/,$d' $D/query-550-h100.xml; echo '</nvidia_smi_log>';;")},
		{name: "one lost, nothing else known", devices: 1, findings: []string{"warning: Unknown Error | XID 79", "warning: reports no GPU while one is lost | /sys"},
			script: "echo 'Unable to determine the device handle for GPU0: 0000:2A:00.0: Unknown Error'; exit 255"},
		{name: "one lost, the others hang", gpus: []string{"0000:18:00.0", "0000:2a:00.0"}, limit: time.Second, hangs: "-q -x -i",
			script:   smi("-q\\ -x) echo 'Unable to determine the device handle for GPU 0000:2A:00.0: GPU is lost.'; exit 15;;\n*) exec sleep 60;;"),
			devices:  1,
			findings: []string{"warning: -i 0000:18:00.0 had not ended after 1s and was killed | reboot", "warning: GPU 1 (0000:2a:00.0) is lost | XID 79", "warning: 1 of 2 GPUs; not 0000:18:00.0 |"}},
		{name: "hangs", script: "echo begun; : > begun; exec sleep 60", limit: time.Second, begins: true, findings: []string{`warning: had not ended after 1s and was killed; it had said "begun" | dmesg`}},
		{name: "hangs with a child of its own", script: "sleep 60 & sleep 60", limit: 200 * time.Millisecond, findings: []string{"warning: was killed | dmesg"}},
		{name: "is stopped", script: "kill -STOP $$; cat $D/query-550-h100.xml", limit: 200 * time.Millisecond, findings: []string{"warning: was killed | dmesg"}},
		{name: "does not listen", script: "trap '' TERM INT HUP; while :; do :; done", limit: 200 * time.Millisecond, findings: []string{"warning: was killed | dmesg"}},
		{name: "topo hangs", script: smi(h100 + "topo\\ -m) exec sleep 60;;"), devices: 3, limit: time.Second, hangs: "topo", findings: []string{"warning: topo -m had not ended after 1s and was killed | dmesg"}},
		{name: "never stops talking", script: "exec yes", limit: 200 * time.Millisecond, findings: []string{"warning: was killed |"}},
		{name: "talks too much", script: "yes | head -c 20000000", findings: []string{"warning: printed more than 16 MiB | run it"}},
		{name: "leaves a child behind that holds its output", script: smi("-q\\ -x) sleep 60 & cat $D/query-550-h100.xml;;\ntopo\\ -m) " + topoOf3 + ";;"), devices: 3, links: true},
		{name: "MIG", devices: 3, findings: []string{"warning: | NVLinks"},
			script: smi("-q\\ -x) cat $D/query-535-mig.xml;;\n-L) cat $D/list-mig.txt;;\ntopo\\ -m) exit 1;;")},
		{name: "MIG without names", devices: 3, findings: []string{"note: UUIDs of all MIG devices | nvidia-smi -L", "warning: | NVLinks"},
			script: smi("-q\\ -x) cat $D/query-535-mig.xml;;\n-L) echo nothing;;\ntopo\\ -m) exit 1;;")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scripts := map[string]string{}
			if test.script != "" {
				scripts["nvidia-smi"] = test.script
			}
			if test.limit == 0 {
				test.limit = time.Minute
			}
			dir := host(t, scripts)
			kill := func(pid int) {
				if test.begins {
					waitFile(t, filepath.Join(dir, "begun"))
				}
				kill(pid)
			}
			r, findings, err := Find(t.Context(), Options{Path: dir, Limit: test.limit, GPUs: test.gpus,
				Run: func(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error) {
					if !strings.HasPrefix(strings.Join(args, " "), test.hangs) {
						limit = time.Minute
					}
					return run(ctx, kill, limit, path, args)
				}})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Devices) != test.devices || (r.Links != nil) != test.links || r.NoDriver != test.noDriver || r.Devices == nil {
				t.Errorf("%d devices, links %q, no driver %v", len(r.Devices), r.Links, r.NoDriver)
			}
			if err := r.Check(); err != nil {
				t.Error(err)
			}
			compare(t, findings, test.findings)
		})
	}
}

// TestFindLost checks that the other GPUs of a host are reported if one GPU is lost.
func TestFindLost(t *testing.T) {
	dir := host(t, map[string]string{"nvidia-smi": smi("-q\\ -x) echo 'Unable to determine the device handle for GPU 0000:18:00.0: GPU is lost.' >&2; exit 15;;\n" +
		"-q\\ -x\\ -i\\ 0000:2a:00.0) cat $D/query-470-v100.xml;;")})
	r, _, err := Find(t.Context(), Options{Path: dir, GPUs: []string{"0000:2a:00.0", "0000:18:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	var h job.Host
	r.Fill(&h, nil)
	if len(h.Devices) != 2 || h.Devices[0].UUID != "GPU0" || !strings.Contains(h.Devices[0].Sick, "GPU is lost") ||
		h.Devices[1].Index != 1 || h.Devices[1].UUID != "GPU-22222222-aaaa-bbbb-cccc-000000000001" {
		t.Errorf("devices %+v", h.Devices)
	}
	if r.Driver != "470.57.02" || r.CUDA != "11.4" {
		t.Errorf("driver %q, CUDA %q", r.Driver, r.CUDA)
	}
}

// TestFindTwins checks that only the first of several GPUs with the same UUID is reported, and that the report
// is still consistent.
func TestFindTwins(t *testing.T) {
	t.Parallel()
	r := nvml.Report{
		Source: "gangrun-nvml",
		Devices: []nvml.Device{
			{Index: 0, UUID: "GPU-a", PCI: "0000:18:00.0"}, {Index: 1, PCI: "0000:2a:00.0"}, {Index: 2, UUID: "GPU-a", PCI: "0000:3a:00.0"},
			{Index: 3, UUID: "GPU-b", PCI: "0000:5d:00.0"}, {Index: 4, PCI: "0000:6d:00.0"}, {Index: 5, UUID: "GPU-a", PCI: "0000:7d:00.0"},
		},
		NICs: []job.NIC{{Name: "a", Links: []job.Link{"PIX", "PXB", "PHB", "NODE", "SYS", "SYS"}}, {Name: "b"}},
	}
	o := Options{GPUs: []string{}}
	for i, d := range r.Devices {
		o.GPUs = append(o.GPUs, d.PCI)
		r.Links = append(r.Links, make([]job.Link, len(r.Devices)))
		for j := range r.Devices {
			if i != j {
				r.Links[i][j] = job.Link("NV" + strconv.Itoa(i+j))
			}
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	o.Path = host(t, map[string]string{"gangrun-nvml": "cat <<'END'\n" + string(b) + "\nEND"})
	got, findings, err := Find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := nvml.Report{
		Source: "gangrun-nvml", Devices: []nvml.Device{r.Devices[0], r.Devices[1], r.Devices[3], r.Devices[4]},
		Links: [][]job.Link{{"", "NV1", "NV3", "NV4"}, {"NV1", "", "NV4", "NV5"}, {"NV3", "NV4", "", "NV7"}, {"NV4", "NV5", "NV7", ""}},
		NICs:  []job.NIC{{Name: "a", Links: []job.Link{"PIX", "PXB", "NODE", "SYS"}}, {Name: "b"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	compare(t, findings, []string{
		"warning: GPU 2 (0000:3a:00.0) has the UUID of GPU 0 (0000:18:00.0), GPU-a: it is left out | nvidia-smi -L",
		"warning: GPU 5 (0000:7d:00.0) has the UUID of GPU 0 (0000:18:00.0), GPU-a: it is left out | nvidia-smi -L",
	})
}

// host returns a directory of programs. scripts has their names and texts.
func host(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	// A program cannot be started while a child that is being forked has it open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for name, script := range scripts {
		script = "#!/bin/sh\nD=" + data + "\ncd " + dir + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// smi returns a script that answers according to its arguments. It fails for other arguments.
func smi(cases string) string {
	return "case \"$*\" in\n" + cases + "\n*) echo \"nvidia-smi was called with $*\" >&2; exit 2;;\nesac"
}

const (
	topoOf3 = "printf '\\tGPU0\\tGPU1\\tGPU2\\tmlx5_0\\tCPU Affinity\\tNUMA Affinity\\nGPU0\\t X \\tNV18\\tNV18\\tPIX\\t0-3\\t0\\nGPU1\\tNV18\\t X \\tNV18\\tSYS\\t4-7\\t1\\nGPU2\\tNV18\\tNV18\\t X \\tSYS\\t4-7\\t1\\n'"
	h100    = "-q\\ -x) cat $D/query-550-h100.xml;;\n"
)

// waitFile waits until a child has created a file. The file is complete then.
func waitFile(t *testing.T, path string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Errorf("the child has not made it after a minute: %v", err)
			return
		}
	}
}

// compare compares findings with "severity: text | hint" in any order.
func compare(t *testing.T, findings []job.Finding, want []string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Errorf("%d findings, want %d: %+v", len(findings), len(want), findings)
	}
	for _, w := range want {
		severity, rest, _ := strings.Cut(w, ": ")
		text, hint, _ := strings.Cut(rest, "|")
		found := false
		for _, f := range findings {
			found = found || string(f.Severity) == severity && f.Check == Check && f.Hint != "" &&
				strings.Contains(f.Text, strings.TrimSpace(text)) && strings.Contains(f.Hint, strings.TrimSpace(hint))
		}
		if !found {
			t.Errorf("no finding is %q: %+v", w, findings)
		}
	}
}
