package nvml

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const mib, gib = 1 << 20, 1 << 30

func TestBusyAndSick(t *testing.T) {
	ok := Device{UUID: "GPU-a", PCI: "0000:3b:00.0", MemoryTotal: 80 * gib}
	with := func(change func(*Device)) Device { d := ok; change(&d); return d }
	run := Process{PID: 42, User: "ada", Name: "python", Type: "C", Memory: 10 * gib}
	tests := []struct {
		name       string
		device     Device
		ours       bool
		busy, sick []string // a part of the text; nil means that the text is empty
	}{
		{name: "free", device: ok},
		{name: "little memory", device: with(func(d *Device) { d.MemoryUsed = 256 * mib })},
		{name: "memory of nobody", device: with(func(d *Device) { d.MemoryUsed = 257 * mib }), busy: []string{"257 MiB of 80.0 GiB"}},
		{name: "process", device: with(func(d *Device) { d.Processes = []Process{run} }), busy: []string{"pid 42 (python, user ada, 10.0 GiB)"}},
		{name: "own process", ours: true, device: with(func(d *Device) { d.Processes, d.MemoryUsed = []Process{run}, 10*gib+100*mib })},
		{name: "own process and memory of nobody", ours: true, device: with(func(d *Device) { d.Processes, d.MemoryUsed = []Process{run}, 12*gib }), busy: []string{"2.0 GiB of 80.0 GiB"}},
		{name: "display", device: with(func(d *Device) {
			d.Processes, d.MemoryUsed = []Process{{PID: 1, Name: "Xorg", Type: "G", Memory: 600 * mib}}, 620*mib
		})},
		{name: "display of unknown memory", device: with(func(d *Device) { d.Processes, d.MemoryUsed = []Process{{PID: 1, Name: "Xwayland", Type: "G"}}, 2*gib })},
		{name: "draws and computes", device: with(func(d *Device) { d.Processes = []Process{{PID: 7, Type: "C+G"}} }), busy: []string{"used by pid 7"}},
		{name: "many", device: with(func(d *Device) { d.Processes = []Process{{PID: 1}, {PID: 2}, {PID: 3}, {PID: 4}, {PID: 5}} }), busy: []string{"pid 1, pid 2, pid 3 and 2 more"}},
		{name: "exclusive, in use", device: with(func(d *Device) { d.ComputeMode, d.Processes = ComputeExclusiveProcess, []Process{run} }), busy: []string{"pid 42", "exclusive-process"}},
		{name: "exclusive, free", device: with(func(d *Device) { d.ComputeMode = ComputeExclusiveProcess })},
		{name: "prohibited", device: with(func(d *Device) { d.ComputeMode = ComputeProhibited }), busy: []string{"prohibited", "nvidia-smi -c 0"}},
		{name: "lost", device: with(func(d *Device) { d.Lost, d.MemoryUsed = "GPU is lost", 80*gib }), sick: []string{"GPU is lost", "reboot"}},
		{name: "recovery", device: with(func(d *Device) { d.Recovery = "reset" }), sick: []string{"reset"}},
		{name: "corrected errors", device: with(func(d *Device) { d.ECC = ECC{Corrected: 9, AggregateUncorrected: 4} })},
		{name: "uncorrected errors", device: with(func(d *Device) { d.ECC.Uncorrected = 2 }), sick: []string{"2 uncorrectable", "--gpu-reset -i 0000:3b:00.0"}},
		{name: "SRAM", device: with(func(d *Device) { d.ECC.SRAMThresholdsExceeded = true }), sick: []string{"SRAM"}},
		{name: "retired", device: with(func(d *Device) { d.Retired = RetiredPages{SingleBit: 3, DoubleBit: 1} })},
		{name: "retired, pending", device: with(func(d *Device) { d.Retired.Pending = true }), sick: []string{"retired pages are pending"}},
		{name: "remapped", device: with(func(d *Device) { d.Remapped = RemappedRows{Correctable: 3, Uncorrectable: 1} })},
		{name: "remapped, pending, correctable", device: with(func(d *Device) { d.Remapped = RemappedRows{Correctable: 3, Pending: true} })},
		{name: "remapped, pending", device: with(func(d *Device) { d.Remapped = RemappedRows{Uncorrectable: 1, Pending: true} }), sick: []string{"remapped rows are pending"}},
		{name: "remap failure", device: with(func(d *Device) { d.Remapped.Failure = true }), sick: []string{"could not be remapped"}},
		{name: "MIG without instances", device: with(func(d *Device) { d.MIG = true }), sick: []string{"no instances"}},
		{name: "MIG whose instances cannot be read", device: with(func(d *Device) { d.MIG, d.Errors = true, map[string]string{"instances": "unknown error"} })},
		{name: "two at once", device: with(func(d *Device) { d.Remapped.Failure, d.ECC.Uncorrected = true, 1 }), sick: []string{"1 uncorrectable", "; ", "could not be remapped"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h job.Host
			Report{Devices: []Device{test.device}}.Fill(&h, func(Process) bool { return test.ours })
			if len(h.Devices) != 1 {
				t.Fatalf("%d devices", len(h.Devices))
			}
			says(t, "busy", h.Devices[0].Busy, test.busy)
			says(t, "sick", h.Devices[0].Sick, test.sick)
		})
	}
}

func says(t *testing.T, what, text string, want []string) {
	t.Helper()
	if want == nil && text != "" {
		t.Errorf("%s: %q, want nothing", what, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q does not say %q", what, text, w)
		}
	}
}

func TestFillMIG(t *testing.T) {
	one, two, three := 1, 2, 0
	r := Report{
		Devices: []Device{
			{UUID: "GPU-a", Index: 0, PCI: "0000:01:00.0", Name: "A100", CPUs: "0-7", NUMA: "0", MIG: true, MemoryUsed: 50 * mib,
				Instances: []Instance{
					{UUID: "MIG-x", GPUInstance: 1, Profile: "3g.20gb", MemoryTotal: 20 * gib, MemoryUsed: 12 * mib},
					{UUID: "MIG-y", Index: 1, GPUInstance: 2, Profile: "3g.20gb", MemoryTotal: 20 * gib, MemoryUsed: 12 * mib},
				},
				Processes: []Process{{PID: 9, Type: "C", GPUInstance: &two, ComputeInstance: &three}, {PID: 8, Type: "G", GPUInstance: &one}}},
			{UUID: "GPU-b", Index: 1, MemoryTotal: 40 * gib},
			{Index: 2, Lost: "GPU is lost"},
		},
		Links: [][]job.Link{{"", "PXB", "SYS"}, {"PXB", "", ""}, {"SYS", "", ""}},
		NICs:  []job.NIC{{Name: "mlx5_0", Links: []job.Link{"PIX", "NODE", "SYS"}}, {Name: "mlx5_1"}},
	}
	h := job.Host{Name: "h", Devices: []job.Device{{UUID: "old"}}}
	r.Fill(&h, nil)
	var uuids, gpus []string
	for _, d := range h.Devices {
		uuids, gpus = append(uuids, d.UUID), append(gpus, d.GPU)
	}
	if want := []string{"MIG-x", "MIG-y", "GPU-b", "GPU2"}; !slices.Equal(uuids, want) {
		t.Fatalf("devices %q, want %q", uuids, want)
	}
	if want := []string{"GPU-a", "GPU-a", "", ""}; !slices.Equal(gpus, want) {
		t.Errorf("GPUs %q, want %q", gpus, want)
	}
	if x := h.Devices[0]; x.Name != "A100 MIG 3g.20gb" || x.Memory != 20*gib || x.CPUs != "0-7" || x.NUMA != "0" || x.PCI != "0000:01:00.0" || x.Busy != "" {
		t.Errorf("instance %+v", x)
	}
	if y := h.Devices[1].Busy; !strings.Contains(y, "pid 9") {
		t.Errorf("the second instance is not busy: %q", y)
	}
	if h.Devices[3].Sick == "" {
		t.Error("the lost GPU is not sick")
	}
	links := [][]job.Link{{"", "PSB", "PXB", "SYS"}, {"PSB", "", "PXB", "SYS"}, {"PXB", "PXB", "", ""}, {"SYS", "SYS", "", ""}}
	if !reflect.DeepEqual(h.Links, links) {
		t.Errorf("links %q, want %q", h.Links, links)
	}
	if want := []job.Link{"PIX", "PIX", "NODE", "SYS"}; !slices.Equal(h.NICs[0].Links, want) || h.NICs[1].Links != nil {
		t.Errorf("NICs %+v", h.NICs)
	}
	if !slices.Equal(r.NICs[0].Links, []job.Link{"PIX", "NODE", "SYS"}) {
		t.Error("Fill has changed the report")
	}
}

func TestBusID(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:3B:00.0": "0000:3b:00.0",
		"0000:3b:00.0":     "0000:3b:00.0",
		"000:BA:00.0":      "0000:ba:00.0",
		"00010000:E1:1F.7": "10000:e1:1f.7",
		"":                 "", "3b:00.0": "", "0000:3b:00": "", "0000:3b:00.8": "", "GPU0": "", "000000000:3B:00.0": "",
	} {
		got, err := BusID(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestReportJSON checks that every field of a report gets from gangrun-nvml to gangrun.
func TestReportJSON(t *testing.T) {
	gi, ci := 0, 0
	r := Report{
		Source: "gangrun-nvml", Driver: "550.54", CUDA: "12.4", Failed: "f", NoDriver: true,
		Devices: []Device{{
			UUID: "GPU-a", Index: 1, PCI: "0000:3b:00.0", Name: "H100", CPUs: "0-3", NUMA: "0", MemoryTotal: 3, MemoryUsed: 1, MemoryFree: 2,
			MIG: true, Instances: []Instance{{UUID: "MIG-a", Index: 1, GPUInstance: 2, ComputeInstance: 3, Profile: "1g.5gb", MemoryTotal: 3, MemoryUsed: 1, MemoryFree: 2}},
			ComputeMode: ComputeExclusiveThread, Processes: []Process{{PID: 1, User: "u", Name: "n", Type: "C", Memory: 1, GPUInstance: &gi, ComputeInstance: &ci}},
			UtilisationGPU: 1, UtilisationMemory: 2,
			ECC:     ECC{Enabled: true, Corrected: 1, Uncorrected: 2, AggregateCorrected: 3, AggregateUncorrected: 4, SRAMThresholdsExceeded: true},
			Retired: RetiredPages{1, 2, true}, Remapped: RemappedRows{1, 2, true, true},
			Throttle: []string{"gpu_idle"}, Recovery: "reset", Lost: "lost", Errors: map[string]string{"name": "e"},
		}},
		Links: [][]job.Link{{""}}, NICs: []job.NIC{{Name: "mlx5_0", Links: []job.Link{"PIX"}}},
		Events: []Event{{Time: time.Unix(1, 2).UTC(), Kind: EventXID, UUID: "GPU-a", PCI: "p", XID: 79, PID: 7, Text: "t", Sample: &Sample{
			Utilisation: 1, Memory: 2, Power: 3, SMClock: 4, Temperature: 5, Throttle: []string{"sw_power_cap"}, Generation: 6, Width: 7, LargestGeneration: 8, LargestWidth: 9,
			Remapped: RemappedRows{1, 2, true, true}, Retired: RetiredPages{1, 2, true}, Recovery: "reset", LinkErrors: LinkErrors{1, 2, 3},
		}, Origin: &Origin{"python", 1000, []int{4, 1}}}},
		Errors: map[string]string{"driver": "e"},
	}
	filled(t, reflect.ValueOf(r), "report")
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r, back) {
		t.Errorf("got back %+v, want %+v", back, r)
	}
}

// filled fails if a field of the test's report is zero, because the test would not show whether the field is
// lost.
func filled(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time](), v.Type() == reflect.TypeFor[job.NIC]():
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			if v.Field(i).IsZero() {
				t.Errorf("%s is not set in the test", name)
			}
			filled(t, v.Field(i), name)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			filled(t, v.Index(i), path)
		}
	}
}

func TestCheck(t *testing.T) {
	two := []Device{{}, {}}
	for name, test := range map[string]struct {
		report Report
		ok     bool
	}{
		"nothing":            {Report{}, true},
		"no links":           {Report{Devices: two, NICs: []job.NIC{{}}}, true},
		"all":                {Report{Devices: two, Links: [][]job.Link{{"", "PIX"}, {"PIX", ""}}, NICs: []job.NIC{{Links: []job.Link{"PIX", "SYS"}}}}, true},
		"links are too few":  {Report{Devices: two, Links: [][]job.Link{{"", "PIX"}}}, false},
		"a row is too short": {Report{Devices: two, Links: [][]job.Link{{"", "PIX"}, {"PIX"}}}, false},
		"a NIC has too many": {Report{Devices: two, NICs: []job.NIC{{Links: make([]job.Link, 3)}}}, false},
	} {
		if err := test.report.Check(); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
