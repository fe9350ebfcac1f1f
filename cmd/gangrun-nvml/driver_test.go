//go:build cgo && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

// patience is how long a test waits for the program. A test that waits longer fails.
const patience = 2 * time.Minute

// driver builds the library of testdata/driver.c. It returns an environment in which programs load this library in
// place of the host's.
func driver(t *testing.T, flags ...string) []string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-shared", "-fPIC", "-Wall", "-Werror", "-o", filepath.Join(dir, "libnvidia-ml.so.1"), "testdata/driver.c"}, flags...)
	if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return append(os.Environ(), "LD_LIBRARY_PATH="+dir)
}

// TestLoadedDriver runs the program with a driver's library. It tests how go-nvml passes data to C, and what happens
// with functions that the library does not have.
func TestLoadedDriver(t *testing.T) {
	path := build(t)
	read := func(t *testing.T, environ []string) nvml.Report {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path)
		cmd.Env = environ
		var says bytes.Buffer
		cmd.Stderr = &says
		out, err := cmd.Output()
		if err != nil || says.Len() > 0 {
			t.Fatalf("it ended with %v, and said %q", err, says.String())
		}
		var r nvml.Report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		return r
	}

	t.Run("report", func(t *testing.T) {
		r := read(t, driver(t))
		if r.Driver != "570.1" || r.CUDA != "12.8" || r.Failed != "" || r.NoDriver || len(r.Devices) != 2 {
			t.Fatalf("%+v", r)
		}
		d := r.Devices[0]
		zero, one := 0, 1
		if len(d.Processes) != 3 || d.Processes[0].User == "" || !strings.HasSuffix(d.Processes[0].Name, "gangrun-nvml") {
			t.Fatalf("processes %+v", d.Processes)
		}
		pid, user, name := d.Processes[0].PID, d.Processes[0].User, d.Processes[0].Name
		errs := d.Errors
		d.Errors = nil
		want := nvml.Device{
			UUID: "GPU-0", PCI: "0000:3b:00.0", Name: "NVIDIA H100", CPUs: "0-3,8128", MemoryTotal: 80, MemoryUsed: 9, MemoryFree: 70,
			Processes: []nvml.Process{
				{PID: pid, User: user, Name: name, Type: "C", Memory: 5, GPUInstance: &zero},
				{PID: pid, User: user, Name: name, Type: "C", Memory: 5, GPUInstance: &one},
				{PID: pid, User: user, Name: name, Type: "C"},
			},
			Retired: nvml.RetiredPages{SingleBit: 2, Pending: true}, Recovery: "drain p2p",
		}
		if !reflect.DeepEqual(d, want) {
			t.Errorf("got  %+v\nwant %+v", d, want)
		}
		for field, function := range map[string]string{"numa": "nvmlDeviceGetMemoryAffinity", "ecc": "nvmlDeviceGetEccMode", "utilisation_gpu": "nvmlDeviceGetUtilizationRates",
			"compute_mode": "nvmlDeviceGetComputeMode", "remapped_rows": "nvmlDeviceGetRemappedRows", "throttle": "nvmlDeviceGetCurrentClocksThrottleReasons"} {
			if want := "not supported: this driver has no " + function; errs[field] != want {
				t.Errorf("%s: %q, want %q", field, errs[field], want)
			}
		}
		if d := r.Devices[1]; d.UUID != "GPU-1" || d.Lost != "GPU is lost" || d.Errors["pci"] != "GPU is lost" || d.Errors["memory_used"] != "GPU is lost" {
			t.Errorf("the lost GPU: %+v", d)
		}
		if want := [][]job.Link{{"", ""}, {"", ""}}; !reflect.DeepEqual(r.Links, want) {
			t.Errorf("links %q", r.Links)
		}
	})

	t.Run("sparse", func(t *testing.T) {
		environ := driver(t, "-DSPARSE")
		r := read(t, environ)
		if len(r.Devices) != 2 || r.Devices[1].UUID != "GPU-1" || r.Devices[1].Lost != "" {
			t.Fatalf("%+v", r)
		}
		for field, why := range r.Devices[0].Errors {
			if !strings.Contains(why, "this driver has no nvml") {
				t.Errorf("%s: %q", field, why)
			}
		}
		if r.Devices[0].Errors["name"] == "" || r.Errors["driver"] == "" {
			t.Errorf("%+v", r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "events")
		cmd.Env = environ
		in, hold, err := os.Pipe() // an input that does not end
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		defer hold.Close()
		cmd.Stdin = in
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "this driver has no nvmlEventSetCreate") {
			t.Errorf("events: %v, %q", err, out)
		}
	})

	t.Run("events", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "events")
		cmd.Env = driver(t)
		var says bytes.Buffer
		cmd.Stderr = &says
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(out)
		next := func() (nvml.Event, error) {
			for {
				var e nvml.Event
				if err := decoder.Decode(&e); err != nil || e.Kind != nvml.EventAlive {
					return e, err
				}
			}
		}
		got, err := next()
		if err != nil {
			t.Fatalf("no event: %v, %q", err, says.String())
		}
		if got.Kind != nvml.EventXID || got.XID != 63 || got.UUID != "GPU-0" || got.PCI != "0000:3b:00.0" || got.Text != "" || got.Time.IsZero() {
			t.Errorf("%+v", got)
		}
		_ = in.Close()
		if got, err := next(); err != io.EOF {
			t.Errorf("after its input has ended: %+v, %v", got, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if want := "gangrun-nvml: warning: GPU GPU-1 is not watched: GPU is lost\n"; says.String() != want {
			t.Errorf("it said %q, want %q", says.String(), want)
		}
	})

	// The test also starts the program in the way in which gangrun starts it.
	through := func(t *testing.T, flags ...string) string {
		environ := driver(t, flags...)
		program := filepath.Join(t.TempDir(), "gangrun-nvml")
		script := "#!/bin/sh\nexec env " + environ[len(environ)-1] + " '" + path + "' \"$@\"\n"
		// A program cannot be started while a child that is being forked has it open for writing.
		syscall.ForkLock.RLock()
		err := os.WriteFile(program, []byte(script), 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	watch := func(t *testing.T, o probe.Watching, flags ...string) (events []nvml.Event, findings []job.Finding) {
		o.NVML, o.GPUs = through(t, flags...), []string{"GPU-0", "GPU-1"}
		o.Start = patience
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		heard := func() {
			if len(events)+len(findings) == 2 {
				cancel()
			}
		}
		probe.Watch(ctx, o, func(e nvml.Event) { events = append(events, e); heard() }, func(f job.Finding) { findings = append(findings, f); heard() })
		return events, findings
	}
	t.Run("watched", func(t *testing.T) {
		events, findings := watch(t, probe.Watching{Silence: patience})
		if len(events) != 1 || events[0].XID != 63 || events[0].UUID != "GPU-0" {
			t.Errorf("events %+v", events)
		}
		if len(findings) != 1 || findings[0].Check != probe.CheckWatch || findings[0].Text != "GPU GPU-1 is not watched: GPU is lost" {
			t.Errorf("findings %+v", findings)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		events, findings := watch(t, probe.Watching{Silence: 200 * time.Millisecond}, "-DHANGS")
		if len(events) > 0 || len(findings) != 2 || findings[1].Check != probe.CheckHung {
			t.Errorf("events %+v, findings %+v", events, findings)
		}
	})

	// This subtest checks the processes on each GPU that gangrun gets in two looks.
	t.Run("processes", func(t *testing.T) {
		list := filepath.Join(t.TempDir(), "processes")
		if err := os.WriteFile(list, []byte("0 101\n1 103\n0 102\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PROCESSES", list)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var got []nvml.Event
		samples := map[string]nvml.Sample{}
		looks := 0
		probe.Watch(ctx, probe.Watching{NVML: through(t, "-DBOTH"), GPUs: []string{"GPU-0", "GPU-1"}, Start: patience, Silence: patience}, func(e nvml.Event) {
			switch e.Kind {
			case nvml.EventSample:
				samples[e.UUID] = *e.Sample
			case nvml.EventProcess:
				got = append(got, nvml.Event{UUID: e.UUID, PID: e.PID})
			case nvml.EventLooked:
				if looks++; looks == 1 { // the last look has only one process
					if err := os.WriteFile(list, []byte("1 101\n"), 0o600); err != nil {
						t.Error(err)
					}
				} else {
					cancel()
				}
			}
		}, func(f job.Finding) { t.Errorf("%+v", f) })
		want := []nvml.Event{{UUID: "GPU-0", PID: 101}, {UUID: "GPU-0", PID: 102}, {UUID: "GPU-1", PID: 103}, {UUID: "GPU-1", PID: 101}}
		if looks != 2 || !slices.Equal(got, want) {
			t.Errorf("%d looks, %+v; want %+v", looks, got, want)
		}
		sample := nvml.Sample{Power: 698, SMClock: 1980, Temperature: 61, Generation: 4, Width: 8, LargestGeneration: 5, LargestWidth: 16,
			Retired: nvml.RetiredPages{SingleBit: 2, Pending: true}, Recovery: "drain p2p", LinkErrors: nvml.LinkErrors{Replays: 17, Recoveries: 34, CRC: 119}}
		if !reflect.DeepEqual(samples, map[string]nvml.Sample{"GPU-0": sample, "GPU-1": sample}) {
			t.Errorf("samples %+v", samples)
		}
	})

	// A driver must be reported as one even if nothing, or not everything, is known about it.
	for name, test := range map[string]struct {
		flags    []string
		devices  int
		findings []string // "severity: text", without the finding that nvidia-smi is missing
		missing  bool     // whether nvidia-smi, which should be asked, is missing
	}{
		"cannot be counted": {[]string{"-DCOUNTED=999"}, 0, []string{"warning: NVML cannot report any GPU: Unknown Error"}, true},
		"none":              {[]string{"-DCOUNT=0"}, 0, []string{"warning: the NVIDIA driver reports no GPU, and yet there are 2 (0000:3b:00.0, 0000:5d:00.0)"}, false},
		"none is allowed":   {[]string{"-DHANDLE=DENIED"}, 0, []string{"warning: NVML cannot report any GPU: GPU 0: Insufficient Permissions"}, true},
		"one is allowed": {[]string{"-DHANDLE=(i==1?DENIED:OK)"}, 1, []string{
			"note: NVML does not report every GPU: GPU 1: Insufficient Permissions", "warning: the driver reports 1 of 2 GPUs; not 0000:5d:00.0"}, false},
		"crashes": {[]string{"-DCRASHES"}, 0, []string{"warning: gangrun-nvml crashed (SIGSEGV) and said "}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := probe.Options{NVML: through(t, test.flags...), Path: t.TempDir(), Limit: patience, GPUs: []string{"0000:3b:00.0", "0000:5d:00.0"}}
			r, findings, err := probe.Find(t.Context(), o)
			if err != nil || len(r.Devices) != test.devices {
				t.Errorf("%+v, %v", r, err)
			}
			want := test.findings
			if test.missing {
				want = append(want, "warning: nvidia-smi is not in PATH, and cannot be asked instead", "warning: the NVIDIA driver reports no GPU, and yet there are 2")
			}
			for i, f := range findings {
				if i >= len(want) || !strings.HasPrefix(string(f.Severity)+": "+strings.ReplaceAll(f.Text, o.NVML, "gangrun-nvml"), want[i]) {
					t.Errorf("%s: %s", f.Severity, f.Text)
				}
			}
			if len(findings) != len(want) {
				t.Errorf("%d findings, want %d: %+v", len(findings), len(want), findings)
			}
		})
	}
}
