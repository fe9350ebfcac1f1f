package probe

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

func TestFindByNVML(t *testing.T) {
	t.Parallel()
	good := nvml.Report{Source: "gangrun-nvml", Driver: "550.54.15", Devices: []nvml.Device{{UUID: "GPU-a", PCI: "0000:18:00.0", Processes: []nvml.Process{{PID: os.Getpid()}, {PID: 1, User: "given"}}}}}
	text := func(change func(*nvml.Report)) string {
		r := good
		change(&r)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return "cat <<'END'\n" + string(b) + "\nEND"
	}
	tests := []struct {
		name, script, source string
		findings             []string
	}{
		{"sound", text(func(*nvml.Report) {}), "gangrun-nvml", nil},
		{"notes of what cannot be read", text(func(r *nvml.Report) {
			r.Errors = map[string]string{"devices": "GPU 4: Insufficient Permissions", "cuda": "not supported: this driver has no nvmlSystemGetCudaDriverVersion", "driver": "Unknown Error"}
			a := r.Devices[0]
			a.Errors = map[string]string{
				"ecc": "corrected errors: Insufficient Permissions\nuncorrected errors: Not Supported", "retired_pages": "Not Supported",
				"name": "Unknown Error", "throttle": "Unknown Error",
			}
			b, c := a, a
			b.Index, b.UUID, b.PCI, b.Errors = 1, "GPU-b", "0000:2a:00.0", maps.Clone(a.Errors)
			delete(b.Errors, "ecc")
			c.Index, c.UUID, c.PCI, c.Lost = 2, "GPU-c", "0000:3a:00.0", "GPU is lost"
			r.Devices = []nvml.Device{a, b, c}
		}), "gangrun-nvml", []string{
			"note: NVML does not report every GPU: GPU 4: Insufficient Permissions | container", "note: NVML does not report driver: Unknown Error | container",
			"note: NVML does not report ecc of GPU 0: corrected errors: Insufficient Permissions; uncorrected errors: Not Supported | container",
			"note: NVML does not report name, throttle of GPU 0, 1: Unknown Error | container", "warning: GPU 2 (0000:3a:00.0) is lost |",
		}},
		{"GPUs cannot be counted", text(func(r *nvml.Report) {
			*r = nvml.Report{Source: "gangrun-nvml", Devices: []nvml.Device{}, Errors: map[string]string{"devices": "Unknown Error"}}
		}), "nvidia-smi", []string{"warning: NVML cannot report any GPU: Unknown Error; gangrun asks nvidia-smi | dmesg"}},
		{"no devices, not even none", "echo '{}'", "nvidia-smi", []string{"warning: printed no report: it has no devices | of this gangrun"}},
		{"crash", "kill -SEGV $$", "nvidia-smi", []string{"warning: gangrun-nvml crashed (segmentation fault) and said nothing; gangrun asks nvidia-smi | Xid and segfault in dmesg"}},
		{"crash, as Go tells it", "echo 'fatal error: unexpected signal during runtime execution' >&2; echo '[signal SIGBUS: bus error code=0x1 addr=0x2a pc=0x7f]' >&2; exit 2", "nvidia-smi",
			[]string{"warning: gangrun-nvml crashed (SIGBUS) and said \"fatal error | segfault in dmesg"}},
		{"crash, as old Go tells it", "echo 'SIGSEGV: segmentation violation' >&2; echo 'PC=0x7f m=0 sigcode=1 addr=0x2a' >&2; exit 2", "nvidia-smi",
			[]string{"warning: gangrun-nvml crashed (SIGSEGV) and said \"SIGSEGV: seg | segfault in dmesg"}},
		{"killed", "kill -KILL $$", "nvidia-smi", []string{"warning: gangrun-nvml was ended by signal killed and said nothing; | OOM killer"}},
		{"another failure", "echo 'error: [signal SIGSEGV: no]' >&2; exit 1", "nvidia-smi", []string{"warning: gangrun-nvml ended with status 1 and said | run it and look"}},
		{"one lost", text(func(r *nvml.Report) {
			r.Devices = append(r.Devices, nvml.Device{Index: 1, PCI: "0000:2a:00.0", Lost: "GPU is lost"})
		}), "gangrun-nvml", []string{"warning: GPU 1 (0000:2a:00.0) is lost: GPU is lost | XID 79"}},
		{"no driver", text(func(r *nvml.Report) { *r = nvml.Report{NoDriver: true, Failed: "library not found"} }), "nvidia-smi", nil},
		{"NVML fails", text(func(r *nvml.Report) { *r = nvml.Report{Failed: "unknown error"} }), "nvidia-smi", []string{"warning: NVML cannot be used: unknown error; gangrun asks nvidia-smi | nvidia-smi"}},
		{"old glibc", "echo \"gangrun-nvml: /lib64/libc.so.6: version GLIBC_2.34 not found\" >&2; exit 1", "nvidia-smi", []string{"warning: GLIBC_2.34 | remove gangrun-nvml"}},
		{"another version", text(func(r *nvml.Report) { r.Links = [][]job.Link{{"", "PIX"}} }), "nvidia-smi", []string{"warning: does not fit together | of this gangrun"}},
		{"rubbish", "echo '{\"devices\": 3}'", "nvidia-smi", []string{"warning: printed no report | of this gangrun"}},
		{"half", "printf '{\"devices\": ['", "nvidia-smi", []string{"warning: printed no report | of this gangrun"}},
		{"stopped", "kill -STOP $$", "nvidia-smi", []string{"warning: gangrun-nvml had not ended after 1s and was killed | dmesg"}},
		{"not executable", "", "nvidia-smi", []string{"warning: cannot be started | mode"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := host(t, map[string]string{"gangrun-nvml": test.script, "nvidia-smi": smi(h100 + "topo\\ -m) " + topoOf3 + ";;")})
			o := Options{Path: dir, Limit: time.Minute, Owner: func(pid int) string { return "owner of " + strconv.Itoa(pid) }}
			if test.name == "stopped" { // nvidia-smi is not stopped, and has its time
				o.Limit = time.Second
				o.Run = func(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error) {
					if filepath.Base(path) == "nvidia-smi" {
						limit = time.Minute
					}
					return Run(ctx, limit, path, args...)
				}
			}
			if test.script == "" {
				o.NVML = filepath.Join(dir, "nothing")
			}
			r, findings, err := Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Source != test.source || len(r.Devices) == 0 {
				t.Errorf("asked %q: %+v", r.Source, r)
			}
			if r.Source == "gangrun-nvml" {
				if p := r.Devices[0].Processes; p[0].User != "owner of "+strconv.Itoa(os.Getpid()) || p[1].User != "given" {
					t.Errorf("processes %+v", p)
				}
			}
			compare(t, findings, test.findings)
		})
	}
}

// TestFindNothing checks the findings if gangrun-nvml finds no GPU, with and without nvidia-smi.
func TestFindNothing(t *testing.T) {
	t.Parallel()
	const (
		none    = `echo '{"source":"gangrun-nvml","driver":"570.1","devices":[]}'`
		broken  = `echo '{"source":"gangrun-nvml","driver":"570.1","devices":[],"errors":{"devices":"Unknown Error"}}'`
		noSMI   = "warning: nvidia-smi is not in PATH, and cannot be asked instead | ranks run on CPUs"
		nothing = "warning: reports no GPU, and yet there are 1 (0000:18:00.0) | ranks run on CPUs"
	)
	one := []string{"0000:18:00.0"}
	tests := []struct {
		name, script string
		gpus         []string
		noDriver     bool
		findings     []string
	}{
		{"none", none, nil, false, []string{"note: the NVIDIA driver finds no GPU on this host | CPUs"}},
		{"none, and yet there is one", none, one, false, []string{nothing}},
		{"cannot be counted", broken, nil, false, []string{"warning: cannot report any GPU: Unknown Error |", noSMI}},
		{"cannot be counted, and yet there is one", broken, one, false, []string{"warning: cannot report any GPU: Unknown Error |", noSMI, nothing}},
		{"hangs", "kill -STOP $$", nil, false, []string{"warning: had not ended after 1s and was killed | dmesg", noSMI}},
		{"hangs, and yet there is one", "kill -STOP $$", one, false, []string{"warning: had not ended after 1s and was killed | dmesg", noSMI, nothing}},
		{"crashes", "kill -SEGV $$", nil, false, []string{"warning: crashed (segmentation fault) | dmesg", noSMI}},
		{"old glibc", "echo 'libc.so.6: version GLIBC_2.34 not found' >&2; exit 1", nil, false, []string{"warning: GLIBC_2.34 | remove gangrun-nvml", noSMI}},
		{"no driver", `echo '{"devices":[],"failed":"none","no_driver":true}'`, nil, true, []string{"note: no NVIDIA driver: nvidia-smi is not in PATH | install"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Path: host(t, map[string]string{"gangrun-nvml": test.script}), GPUs: test.gpus, Limit: time.Minute}
			if strings.Contains(test.script, "STOP") {
				o.Limit = time.Second
			}
			r, findings, err := Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Devices) > 0 || r.Devices == nil || r.NoDriver != test.noDriver {
				t.Errorf("%+v", r)
			}
			for _, f := range findings {
				if strings.Contains(f.Text, "asks nvidia-smi") {
					t.Errorf("there is no nvidia-smi to ask: %q", f.Text)
				}
			}
			compare(t, findings, test.findings)
		})
	}
}

// TestFindHung checks that all looks with the same Hung ask a driver that hangs only once.
func TestFindHung(t *testing.T) {
	t.Parallel()
	dir := host(t, map[string]string{"nvidia-smi": smi(h100 + "topo\\ -m) " + topoOf3 + ";;")})
	asked := 0
	o := Options{NVML: filepath.Join(dir, "gangrun-nvml"), Path: dir, Limit: time.Minute, Hung: new(atomic.Bool)}
	hangs := false
	o.Run = func(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error) {
		if path != o.NVML {
			return Run(ctx, limit, path, args...)
		}
		asked++
		return Output{Hung: hangs, Code: 1, Stderr: []byte("not now")}, nil
	}
	for i, want := range []struct {
		hangs   bool
		asked   int
		finding string
	}{
		{false, 1, "warning: gangrun-nvml ended with status 1 | look"}, // gangrun-nvml is asked again
		{true, 2, "warning: gangrun-nvml had not ended after 1m0s and was killed | dmesg"},
		{true, 2, "note: gangrun-nvml hung before and is not asked again; gangrun asks nvidia-smi instead | dmesg"},
		{false, 2, "note: gangrun-nvml hung before | dmesg"},
	} {
		hangs = want.hangs
		r, findings, err := Find(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Devices) != 3 || asked != want.asked || o.Hung.Load() != (i > 0) {
			t.Errorf("look %d: %d devices, asked %d times, hung %v", i, len(r.Devices), asked, o.Hung.Load())
		}
		compare(t, findings, []string{want.finding})
	}
	o.Hung = nil // nothing is remembered without Hung
	for range 2 {
		hangs = true
		if _, _, err := Find(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}
