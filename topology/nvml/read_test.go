package nvml

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// sound checks that a report is consistent.
func sound(t *testing.T, r Report) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for i, row := range r.Links {
		for j := range row {
			if row[j] != r.Links[j][i] || i == j && row[j] != "" {
				t.Errorf("links are not symmetric, or the diagonal is not empty: %q", r.Links)
			}
		}
	}
}

func TestReadHealthy(t *testing.T) {
	l := fakeHost(8, func(i int, g *fakeGPU) {
		if i == 1 {
			g.processes[QueryCompute] = []Process{{PID: 42, Memory: gib}}
		}
	})
	r := Read(l, func(pid int) (string, string) { return "ada", "python" })
	sound(t, r)
	if r.Source != "gangrun-nvml" || r.Driver != "550.54.15" || r.CUDA != "12.4" || r.Failed != "" || r.NoDriver || r.Errors != nil || len(r.Devices) != 8 {
		t.Fatalf("%+v", r)
	}
	want := Device{
		UUID: "GPU-1", Index: 1, PCI: "0000:20:00.0", Name: "NVIDIA H100 80GB HBM3", CPUs: "0-15,32-47,64", NUMA: "0",
		MemoryTotal: 80 * gib, MemoryUsed: 100 * mib, MemoryFree: 79 * gib, ComputeMode: ComputeDefault,
		Processes:      []Process{{PID: 42, User: "ada", Name: "python", Type: "C", Memory: gib}},
		UtilisationGPU: 93, UtilisationMemory: 41, ECC: ECC{Enabled: true, Corrected: 5, AggregateCorrected: 7},
		Remapped: RemappedRows{Correctable: 2, Pending: true}, Throttle: []string{"gpu_idle", "sw_power_cap"},
		Errors: map[string]string{"retired_pages": "Not Supported"}, // GPUs since Ampere remap rows
	}
	if !reflect.DeepEqual(r.Devices[1], want) {
		t.Errorf("got  %+v\nwant %+v", r.Devices[1], want)
	}
	for i, row := range r.Links {
		for j, link := range row {
			if i != j && link != "NV18" {
				t.Errorf("GPUs %d and %d: %q", i, j, link)
			}
		}
	}
	var h job.Host
	r.Fill(&h, nil)
	for i, d := range h.Devices {
		if d.Sick != "" || (d.Busy != "") != (i == 1) {
			t.Errorf("device %+v", d)
		}
	}
}

func TestReadNothing(t *testing.T) {
	for name, test := range map[string]struct {
		lib  *fakeLibrary
		want Report
	}{
		"no driver": {&fakeLibrary{init: said{"libnvidia-ml.so.1 cannot be loaded", ErrNoDriver}},
			Report{Source: "gangrun-nvml", Failed: "libnvidia-ml.so.1 cannot be loaded", NoDriver: true, Devices: []Device{}}},
		"init fails": {&fakeLibrary{init: said{"Driver/library version mismatch", nil}},
			Report{Source: "gangrun-nvml", Failed: "Driver/library version mismatch", Devices: []Device{}}},
		"no GPU": {fakeHost(0, nil), Report{Source: "gangrun-nvml", Driver: "550.54.15", CUDA: "12.4", Devices: []Device{}}},
		"nothing is told": {&fakeLibrary{answers: map[Query]any{QueryCount: unknownError, QueryCUDA: said{"that", nil}}},
			Report{Source: "gangrun-nvml", Devices: []Device{}, Errors: map[string]string{"driver": "Not Supported", "cuda": "that", "devices": "Unknown Error"}}},
	} {
		if got := Read(test.lib, nobody); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// everything has the names of the fields that a GPU may not report.
var everything = []string{"uuid", "pci", "name", "cpus", "numa", "memory_total", "memory_used", "memory_free", "compute_mode",
	"utilisation_gpu", "utilisation_memory", "ecc", "retired_pages", "remapped_rows", "throttle", "recovery", "processes"}

func TestReadLost(t *testing.T) {
	l := fakeHost(4, func(i int, g *fakeGPU) {
		g.links = nil
		if i == 1 {
			g.broken = lost
		}
	})
	l.gpus[3] = error(lost)
	r := Read(l, nobody)
	sound(t, r)
	d := r.Devices[1]
	if d.Lost != "GPU is lost" || d.Index != 1 || d.UUID != "" {
		t.Errorf("%+v", d)
	}
	for _, field := range append([]string{"mig", "instances", "links"}, everything...) {
		if !strings.Contains(d.Errors[field], "GPU is lost") {
			t.Errorf("field %s: %q", field, d.Errors[field])
		}
	}
	if d := r.Devices[3]; d.Lost != "GPU is lost" || d.Index != 3 || d.Errors["links"] == "" {
		t.Errorf("without a handle: %+v", d)
	}
	for _, i := range []int{0, 2} {
		if d := r.Devices[i]; d.Lost != "" || d.Errors["links"] != "" || d.UUID == "" {
			t.Errorf("a GPU beside it: %+v", d)
		}
	}
	if want := [][]job.Link{{"", "", "SYS", ""}, {"", "", "", ""}, {"SYS", "", "", ""}, {"", "", "", ""}}; !reflect.DeepEqual(r.Links, want) {
		t.Errorf("links %q", r.Links)
	}
	var h job.Host
	r.Fill(&h, nil)
	if h.Devices[0].Sick != "" || !strings.Contains(h.Devices[1].Sick, "reboot") || !strings.Contains(h.Devices[3].Sick, "reboot") {
		t.Errorf("%+v", h.Devices)
	}
}

// TestReadErrors checks that each error is recorded for its own field only.
func TestReadErrors(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*fakeGPU)
		errors   map[string]string // in addition to retired_pages
		lost     string
		recovery string
	}{
		"nothing is supported": {func(g *fakeGPU) { g.answers = nil; g.processes[QueryCompute] = notSupported }, func() map[string]string {
			all := map[string]string{}
			for _, field := range everything {
				all[field] = "Not Supported"
			}
			return all
		}(), "", ""},
		"one unknown error":  {func(g *fakeGPU) { g.answers[QueryName] = unknownError }, map[string]string{"name": "Unknown Error"}, "", ""},
		"memory":             {func(g *fakeGPU) { g.answers[QueryMemory] = unknownError }, map[string]string{"memory_total": "Unknown Error", "memory_used": "Unknown Error", "memory_free": "Unknown Error"}, "", ""},
		"no UUID":            {func(g *fakeGPU) { g.answers[QueryUUID] = unknownError }, map[string]string{"uuid": "Unknown Error"}, "its UUID cannot be read: Unknown Error", ""},
		"lost on the way":    {func(g *fakeGPU) { g.answers[QueryThrottle] = lost }, map[string]string{"throttle": "GPU is lost"}, "GPU is lost", ""},
		"a reset is needed":  {func(g *fakeGPU) { g.answers[QueryECC] = said{"GPU requires reset", ErrReset} }, map[string]string{"ecc": "GPU requires reset"}, "", "reset"},
		"recovery":           {func(g *fakeGPU) { g.answers[QueryRecovery] = num(4) }, nil, "", "drain and reset"},
		"recovery, unheard":  {func(g *fakeGPU) { g.answers[QueryRecovery] = num(9) }, nil, "", "action 9, which is not known"},
		"bus id":             {func(g *fakeGPU) { g.answers[QueryPCI] = Answer{Text: "somewhere"} }, map[string]string{"pci": `"somewhere" is no PCI bus id, as in 0000:3b:00.0`}, "", ""},
		"compute mode":       {func(g *fakeGPU) { g.answers[QueryComputeMode] = num(7) }, map[string]string{"compute_mode": "7 is no compute mode that is known"}, "", ""},
		"SRAM not supported": {func(g *fakeGPU) { delete(g.answers, QuerySRAM) }, nil, "", ""},
		"SRAM fails":         {func(g *fakeGPU) { g.answers[QuerySRAM] = unknownError }, map[string]string{"ecc": "Unknown Error"}, "", ""},
		"MIG mode":           {func(g *fakeGPU) { g.answers[QueryMIG] = unknownError }, map[string]string{"mig": "Unknown Error", "instances": "Unknown Error"}, "", ""},
		"processes":          {func(g *fakeGPU) { g.processes[QueryCompute] = unknownError }, map[string]string{"processes": "Unknown Error"}, "", ""},
		"graphics":           {func(g *fakeGPU) { g.processes[QueryGraphics] = unknownError }, map[string]string{"processes": "Unknown Error"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := fakeHost(2, func(i int, g *fakeGPU) {
				if i == 0 {
					test.change(g)
				}
			})
			r := Read(l, nobody)
			sound(t, r)
			want := map[string]string{"retired_pages": "Not Supported"}
			maps.Copy(want, test.errors)
			d := r.Devices[0]
			if !maps.Equal(d.Errors, want) {
				t.Errorf("got  %q\nwant %q", d.Errors, want)
			}
			if d.Lost != test.lost || d.Recovery != test.recovery {
				t.Errorf("lost %q, recovery %q", d.Lost, d.Recovery)
			}
			if r.Devices[1].Errors["name"] != "" || r.Devices[1].Lost != "" {
				t.Errorf("the GPU beside it: %+v", r.Devices[1])
			}
		})
	}
}

func TestReadNoPermission(t *testing.T) {
	l := fakeHost(3, nil)
	l.gpus[1] = error(said{"Insufficient Permissions", ErrNoPermission})
	r := Read(l, nobody)
	sound(t, r)
	if len(r.Devices) != 2 || r.Devices[1].Index != 2 || len(r.Links) != 2 || r.Errors["devices"] != "GPU 1: Insufficient Permissions" {
		t.Errorf("%+v", r)
	}
}

func TestReadMIG(t *testing.T) {
	instance := func(gi, ci uint64) *fakeGPU {
		return &fakeGPU{answers: map[Query]any{
			QueryUUID: Answer{Text: "MIG-" + string(rune('a'+gi))}, QueryName: Answer{Text: "NVIDIA A100-SXM4-40GB MIG 3g.20gb"},
			QueryMemory: num(20*gib, 2*gib, 18*gib), QueryGPUInstance: num(gi), QueryComputeInstance: num(ci),
		}, processes: map[Query]any{QueryCompute: []Process{{PID: int(10 + gi)}}}}
	}
	make := func(change func(g *fakeGPU)) Device {
		l := fakeHost(1, func(_ int, g *fakeGPU) {
			g.answers[QueryMIG], g.answers[QueryInstances] = num(1), num(4)
			g.instances = []any{instance(1, 0), nil, instance(2, 3), nil}
			if change != nil {
				change(g)
			}
		})
		r := Read(l, nobody)
		sound(t, r)
		return r.Devices[0]
	}
	two := []Instance{
		{UUID: "MIG-b", Index: 0, GPUInstance: 1, Profile: "3g.20gb", MemoryTotal: 20 * gib, MemoryUsed: 2 * gib, MemoryFree: 18 * gib},
		{UUID: "MIG-c", Index: 2, GPUInstance: 2, ComputeInstance: 3, Profile: "3g.20gb", MemoryTotal: 20 * gib, MemoryUsed: 2 * gib, MemoryFree: 18 * gib},
	}
	if d := make(nil); !d.MIG || !reflect.DeepEqual(d.Instances, two) || d.Errors["instances"] != "" {
		t.Errorf("%+v", d)
	}
	// Without privileges, the GPU does not report processes, but its instances do.
	d := make(func(g *fakeGPU) { g.processes[QueryCompute] = said{"Insufficient Permissions", ErrNoPermission} })
	if len(d.Processes) != 2 || d.Errors["processes"] != "" {
		t.Fatalf("%+v", d)
	}
	if p := d.Processes[1]; p.PID != 12 || p.Type != "C" || *p.GPUInstance != 2 || *p.ComputeInstance != 3 {
		t.Errorf("%+v", p)
	}
	for name, test := range map[string]struct {
		change func(g *fakeGPU)
		uuids  []string
		says   string
	}{
		"no UUID":   {func(g *fakeGPU) { delete(g.instances[2].(*fakeGPU).answers, QueryUUID) }, []string{"MIG-b", "MIG-GPU-0/2/3"}, "UUID of MIG device 2: Not Supported"},
		"no ids":    {func(g *fakeGPU) { g.instances[0].(*fakeGPU).answers[QueryGPUInstance] = unknownError }, []string{"MIG-c"}, "GPU instance of MIG device 0: Unknown Error"},
		"no handle": {func(g *fakeGPU) { g.instances[0] = error(unknownError) }, []string{"MIG-c"}, "Unknown Error"},
		"no count":  {func(g *fakeGPU) { g.answers[QueryInstances] = unknownError }, nil, "Unknown Error"},
		"none made": {func(g *fakeGPU) { g.instances = []any{nil, nil, nil, nil} }, nil, ""},
	} {
		d := make(test.change)
		var uuids []string
		for _, i := range d.Instances {
			uuids = append(uuids, i.UUID)
		}
		if !d.MIG || !slices.Equal(uuids, test.uuids) || d.Errors["instances"] != test.says {
			t.Errorf("%s: %q, %q", name, uuids, d.Errors["instances"])
		}
	}
}

func TestReadProcesses(t *testing.T) {
	l := fakeHost(1, func(_ int, g *fakeGPU) {
		g.processes = map[Query]any{
			QueryCompute:  []Process{{PID: 1, Memory: 5}, {PID: 2}, {PID: 3, Memory: 1}},
			QueryGraphics: []Process{{PID: 1, Memory: 7}, {PID: 9}},
			QueryMPS:      []Process{{PID: 3}, {PID: 4}},
		}
	})
	want := []Process{{PID: 1, Type: "C+G", Memory: 7}, {PID: 2, Type: "C"}, {PID: 3, Type: "M+C", Memory: 1}, {PID: 9, Type: "G"}, {PID: 4, Type: "M+C"}}
	if got := Read(l, nobody).Devices[0].Processes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestList(t *testing.T) {
	for want, mask := range map[string][]uint64{
		"": {0, 0}, "0": {1}, "63-64": {1 << 63, 1}, "0-63": {^uint64(0)}, "0-127": {^uint64(0), ^uint64(0)}, "1,3,5-6": {0b1101010},
	} {
		if got := list(mask); got != want {
			t.Errorf("%b: got %q, want %q", mask, got, want)
		}
	}
}

func TestFirst(t *testing.T) {
	for want, mask := range map[string][]uint64{"": {0, 0}, "0": {0x3fd}, "1": {0b110}, "64": {0, 1}} {
		if got := first(mask); got != want {
			t.Errorf("%b: got %q, want %q", mask, got, want)
		}
	}
	l := fakeHost(1, func(_ int, g *fakeGPU) { g.answers[QueryNUMA] = Answer{Mask: []uint64{0x3fd}} }) // 0,2-9
	if d := Read(l, nobody).Devices[0]; d.NUMA != "0" {
		t.Errorf("the GPU is close to node %q", d.NUMA)
	}
}

// TestLacks checks that a value that a GPU or driver does not have can be distinguished from a fault, whatever
// the words of the driver are.
func TestLacks(t *testing.T) {
	for why, want := range map[string]bool{
		"Not Supported": true, "not supported: this driver has no nvmlDeviceGetEccMode": true, "a: Not Supported\nb: Not Supported": true,
		"Unknown Error": false, "Insufficient Permissions": false, "a: Not Supported\nb: Unknown Error": false,
	} {
		if got := Lacks(why); got != want {
			t.Errorf("%q: %v", why, got)
		}
	}
	for _, text := range []string{"Not Supported", "Function Not Found", "this driver has no nvmlDeviceGetName"} {
		l := fakeHost(1, func(_ int, g *fakeGPU) { g.answers[QueryName] = said{text, ErrNotSupported} })
		if why := Read(l, nobody).Devices[0].Errors["name"]; !Lacks(why) || !strings.Contains(why, text) {
			t.Errorf("%q became %q", text, why)
		}
	}
}

func TestThrottle(t *testing.T) {
	if got, want := throttle(1<<8|1<<5|1<<40), []string{"sw_thermal_slowdown", "display_clocks_setting", "0x10000000000"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if amount(1<<64-1) != 0 || amount(7) != 7 || integer(1<<40) != 0 {
		t.Error("what is not known is not 0")
	}
	if !errors.Is(lost, ErrLost) {
		t.Error("the fake's error is none of the seam's")
	}
}
