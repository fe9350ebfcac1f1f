package probe

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

const mib = 1 << 20

func TestParseQuery(t *testing.T) {
	r, err := ParseQuery(read(t, "query-550-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Source != "nvidia-smi" || r.Driver != "550.54.15" || r.CUDA != "12.4" || r.Errors != nil || len(r.Devices) != 3 {
		t.Fatalf("report %+v", r)
	}
	const na = "not available"
	want := []nvml.Device{{
		UUID: "GPU-11111111-aaaa-bbbb-cccc-000000000001", PCI: "0000:18:00.0", Name: "NVIDIA H100 80GB HBM3",
		MemoryTotal: 81559 * mib, MemoryUsed: 4 * mib, MemoryFree: 80986 * mib, ComputeMode: nvml.ComputeDefault,
		ECC: nvml.ECC{Enabled: true}, Throttle: []string{"gpu_idle"}, Errors: map[string]string{"retired_pages": na},
	}, {
		UUID: "GPU-11111111-aaaa-bbbb-cccc-000000000002", Index: 1, PCI: "0000:2a:00.0", Name: "NVIDIA H100 80GB HBM3",
		MemoryTotal: 81559 * mib, MemoryUsed: 70124 * mib, MemoryFree: 10866 * mib, ComputeMode: nvml.ComputeExclusiveProcess,
		Processes:      []nvml.Process{{PID: 2718281, Name: "/opt/conda/bin/python", Type: "C", Memory: 70112 * mib}},
		UtilisationGPU: 97, UtilisationMemory: 41,
		ECC:      nvml.ECC{Enabled: true, Corrected: 4, AggregateCorrected: 7, AggregateUncorrected: 1},
		Remapped: nvml.RemappedRows{Uncorrectable: 1}, Throttle: []string{"sw_power_cap", "hw_thermal_slowdown"},
		Errors: map[string]string{"retired_pages": na},
	}, {
		UUID: "GPU-11111111-aaaa-bbbb-cccc-000000000003", Index: 2, PCI: "0000:3a:00.0", Name: "NVIDIA H100 80GB HBM3",
		MemoryTotal: 81559 * mib, MemoryUsed: 4 * mib, MemoryFree: 80986 * mib, ComputeMode: nvml.ComputeDefault,
		ECC:      nvml.ECC{Enabled: true, Uncorrected: 3, AggregateUncorrected: 3, SRAMThresholdsExceeded: true},
		Remapped: nvml.RemappedRows{Uncorrectable: 2, Pending: true, Failure: true}, Throttle: []string{"gpu_idle"}, Recovery: "reset",
		Errors: map[string]string{"retired_pages": na},
	}}
	for i, d := range r.Devices {
		if !reflect.DeepEqual(d, want[i]) {
			t.Errorf("got  %+v\nwant %+v", d, want[i])
		}
	}
}

func TestParseQueryGenerations(t *testing.T) {
	const na, untold = "not available", "nvidia-smi does not report it"
	two, zero := 2, 0
	tests := []struct {
		file   string
		device int
		want   nvml.Device
		report map[string]string
	}{
		{file: "query-470-v100.xml", want: nvml.Device{
			UUID: "GPU-22222222-aaaa-bbbb-cccc-000000000001", PCI: "0000:06:00.0", Name: "Tesla V100-SXM2-32GB",
			MemoryTotal: 32510 * mib, MemoryFree: 32510 * mib, ComputeMode: nvml.ComputeDefault,
			ECC: nvml.ECC{Enabled: true, Corrected: 4, AggregateCorrected: 7, AggregateUncorrected: 1}, Throttle: []string{"gpu_idle"},
			Retired: nvml.RetiredPages{SingleBit: 2, DoubleBit: 1, Pending: true},
			Errors:  map[string]string{"remapped_rows": na},
		}},
		{file: "query-367-k80.xml", report: map[string]string{"cuda": untold}, want: nvml.Device{
			UUID: "GPU-33333333-aaaa-bbbb-cccc-000000000001", PCI: "0000:05:00.0", Name: "Tesla K80",
			MemoryTotal: 11439 * mib, MemoryFree: 11439 * mib, ComputeMode: nvml.ComputeExclusiveThread,
			Processes: []nvml.Process{{PID: 911, Name: "/usr/lib/xorg/Xorg", Type: "G", Memory: 8 * mib}},
			ECC:       nvml.ECC{Enabled: true}, Throttle: []string{"gpu_idle"},
			Retired: nvml.RetiredPages{SingleBit: 2, DoubleBit: 1}, Errors: map[string]string{"remapped_rows": untold},
		}},
		{file: "query-551-wsl.xml", want: nvml.Device{
			UUID: "GPU-44444444-aaaa-bbbb-cccc-000000000001", PCI: "0000:01:00.0", Name: "NVIDIA GeForce RTX 4090",
			MemoryTotal: 24564 * mib, MemoryUsed: 1433 * mib, MemoryFree: 22779 * mib, ComputeMode: nvml.ComputeDefault,
			Processes:      []nvml.Process{{PID: 25, Name: "/Xwayland", Type: "G"}},
			UtilisationGPU: 3, UtilisationMemory: 7, Errors: map[string]string{"ecc": na, "retired_pages": na, "remapped_rows": na},
		}},
		{file: "query-535-mig.xml", want: nvml.Device{
			UUID: "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", PCI: "0000:01:00.0", Name: "NVIDIA A100-SXM4-40GB",
			MemoryTotal: 40960 * mib, MemoryUsed: 3040 * mib, MemoryFree: 37294 * mib, ComputeMode: nvml.ComputeDefault, MIG: true,
			Instances: []nvml.Instance{
				{UUID: "MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/1/0", GPUInstance: 1, MemoryTotal: 19968 * mib, MemoryUsed: 19 * mib, MemoryFree: 19948 * mib},
				{UUID: "MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/2/0", Index: 1, GPUInstance: 2, MemoryTotal: 19968 * mib, MemoryUsed: 3021 * mib, MemoryFree: 16946 * mib},
			},
			Processes: []nvml.Process{{PID: 31337, Name: "python3", Type: "C", Memory: 2994 * mib, GPUInstance: &two, ComputeInstance: &zero}},
			ECC:       nvml.ECC{Enabled: true},
			Errors:    map[string]string{"utilisation_gpu": na, "utilisation_memory": na, "retired_pages": na, "remapped_rows": na},
		}},
		{file: "query-lost.xml", device: 1, want: nvml.Device{
			Index: 1, PCI: "0000:2a:00.0", Lost: "GPU is lost", Errors: map[string]string{
				"uuid": "GPU is lost", "name": "GPU is lost", "memory_total": "GPU is lost", "memory_used": "GPU is lost", "memory_free": "GPU is lost",
				"compute_mode": "GPU is lost", "processes": "GPU is lost", "utilisation_gpu": untold, "utilisation_memory": untold,
				"ecc": untold, "retired_pages": untold, "remapped_rows": untold, "throttle": untold,
			},
		}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			r, err := ParseQuery(read(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Devices[test.device]; !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if !reflect.DeepEqual(r.Errors, test.report) {
				t.Errorf("errors %q, want %q", r.Errors, test.report)
			}
		})
	}
}

// gpu returns a report of one GPU with some elements.
func gpu(elements string) string {
	return `<?xml version="1.0" ?><nvidia_smi_log><gpu id="00000000:01:00.0"><uuid>GPU-a</uuid>` + elements + `</gpu></nvidia_smi_log>`
}

func TestParseQueryFields(t *testing.T) {
	tests := []struct {
		name, elements, field, says string
		check                       func(nvml.Device) bool
	}{
		{"number", `<utilization><gpu_util>lots</gpu_util></utilization>`, "utilisation_gpu", `"lots" is no number`, nil},
		{"memory", `<fb_memory_usage><used>5 stones</used></fb_memory_usage>`, "memory_used", `"5 stones" is no amount`, nil},
		{"memory overflows", `<fb_memory_usage><used>9223372036854775807 GiB</used></fb_memory_usage>`, "memory_used", "is no amount", nil},
		{"permissions", `<processes>Insufficient Permissions</processes>`, "processes", "Insufficient Permissions", nil},
		{"processes are not told", `<processes>N/A</processes>`, "processes", "not available", nil},
		{"compute mode", `<compute_mode>Sometimes</compute_mode>`, "compute_mode", `"Sometimes" is no compute mode`, nil},
		{"older driver", `<ecc_mode><current_ecc>[Not Supported]</current_ecc></ecc_mode>`, "ecc", "not supported", nil},
		{"ECC without counts", `<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>`, "ecc", "does not report ecc_errors/volatile", nil},
		{"ECC off", `<ecc_mode><current_ecc>Disabled</current_ecc></ecc_mode>`, "", "", func(d nvml.Device) bool { return d.ECC == nvml.ECC{} && d.Errors["ecc"] == "" }},
		{"bus id from the attribute", `<pci><pci_bus_id>ERR!</pci_bus_id></pci>`, "", "", func(d nvml.Device) bool { return d.PCI == "0000:01:00.0" && d.Errors["pci"] == "" }},
		{"requires reset", `<fb_memory_usage><total>[GPU requires reset]</total></fb_memory_usage>`, "memory_total", "GPU requires reset", func(d nvml.Device) bool { return d.Recovery == "reset" && d.Lost == "" }},
		{"recovery action", `<gpu_recovery_action>Drain P2P</gpu_recovery_action>`, "", "", func(d nvml.Device) bool { return d.Recovery == "drain p2p" }},
		{"no recovery action", `<gpu_recovery_action>None</gpu_recovery_action>`, "", "", func(d nvml.Device) bool { return d.Recovery == "" }},
		{"drain", `<gpu_reset_status><reset_required>No</reset_required><drain_and_reset_recommended>Yes</drain_and_reset_recommended></gpu_reset_status>`, "", "", func(d nvml.Device) bool { return d.Recovery == "drain and reset" }},
		{"MIG UUID", `<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device><index>0</index><uuid>MIG-x</uuid></mig_device></mig_devices>`, "", "", func(d nvml.Device) bool { return d.MIG && d.Instances[0].UUID == "MIG-x" }},
		{"entities", `<product_name>A &amp; B</product_name>`, "", "", func(d nvml.Device) bool { return d.Name == "A & B" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := ParseQuery(gpu(test.elements))
			if err != nil {
				t.Fatal(err)
			}
			d := r.Devices[0]
			if test.field != "" && !strings.Contains(d.Errors[test.field], test.says) {
				t.Errorf("%s: %q, want %q", test.field, d.Errors[test.field], test.says)
			}
			if test.check != nil && !test.check(d) {
				t.Errorf("got %+v", d)
			}
		})
	}
	r, err := ParseQuery(strings.Replace(gpu(""), "GPU-a", "Unknown Error", 1))
	if err != nil || !strings.Contains(r.Devices[0].Lost, "Unknown Error") {
		t.Errorf("a GPU without a readable UUID is not lost: %+v, %v", r.Devices, err)
	}
}

func TestParseQueryErrors(t *testing.T) {
	whole := read(t, "query-550-h100.xml")
	half := whole[:strings.Index(whole, "70124 MiB")]
	tests := []struct {
		name, text   string
		line, column int
		says         string
	}{
		{"empty", "", 1, 1, "nothing where <nvidia_smi_log> should begin"},
		{"rubbish", "\n\x00\xff what?\n", 1, 1, `what?" where`},
		{"half of it", half, strings.Count(half, "\n") + 1, len(half) - strings.LastIndexByte(half, '\n'), "ends inside <used>"},
		{"half of a tag", "<nvidia_smi_log>\n<gp", 2, 4, "ends inside <nvidia_smi_log>"},
		{"warning, then half", "WARNING: x\n <nvidia_smi_log><gpu>", 2, 23, "ends inside <gpu>"},
		{"tags that cross", "<nvidia_smi_log><gpu></nvidia_smi_log>", 1, 39, "inside <gpu>"},
		{"too deep", "<nvidia_smi_log>" + strings.Repeat("<a>", 40), 1, 113, "nested deeper than 32"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := ParseQuery(test.text)
			var at *QueryError
			if !errors.As(err, &at) {
				t.Fatalf("got %v, want a *QueryError", err)
			}
			if at.Line != test.line || at.Column != test.column || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want line %d, column %d and %q", err, test.line, test.column, test.says)
			}
			if r.Devices != nil {
				t.Errorf("half a report is used: %+v", r)
			}
		})
	}
}

func TestFillInstances(t *testing.T) {
	r, err := ParseQuery(read(t, "query-535-mig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if fillInstances(r.Devices, "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-other)\n  MIG 3g.20gb     Device  0: (UUID: MIG-other)\n") {
		t.Error("another GPU's instances were taken")
	}
	if !fillInstances(r.Devices, read(t, "list-mig.txt")) {
		t.Error("not all were found")
	}
	var h job.Host
	r.Fill(&h, nil)
	var got []string
	for _, d := range h.Devices {
		got = append(got, d.UUID+" "+d.Name)
	}
	want := []string{
		"MIG-c7384736-a75d-5afc-978f-d2f1294409fd NVIDIA A100-SXM4-40GB MIG 3g.20gb",
		"MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d NVIDIA A100-SXM4-40GB MIG 3g.20gb",
		"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc40 NVIDIA A100-SXM4-40GB",
		"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc41 NVIDIA A100-SXM4-40GB",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if h.Devices[0].Busy != "" || !strings.Contains(h.Devices[1].Busy, "pid 31337") || !strings.Contains(h.Devices[2].Sick, "no instances") {
		t.Errorf("devices %+v", h.Devices)
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, name := range []string{"query-550-h100.xml", "query-535-mig.xml", "query-470-v100.xml", "query-367-k80.xml", "query-551-wsl.xml", "query-lost.xml"} {
		f.Add(read(f, name))
	}
	f.Add(gpu("<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device/></mig_devices>"))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseQuery(text)
		if err != nil {
			var at *QueryError
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		for i, d := range r.Devices {
			if d.Index != i || d.MemoryTotal < 0 || d.MemoryUsed < 0 || d.MemoryFree < 0 || d.ECC.Uncorrected < 0 {
				t.Fatalf("device %+v", d)
			}
		}
		var h job.Host
		r.Fill(&h, nil)
		if len(h.Devices) < len(r.Devices) {
			t.Fatalf("%d devices of %d GPUs", len(h.Devices), len(r.Devices))
		}
		fillInstances(r.Devices, text)
	})
}
