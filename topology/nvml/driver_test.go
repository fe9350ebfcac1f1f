//go:build cgo && linux

package nvml

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/gangrun/gangrun/internal/job"
)

// mocked returns go-nvml's own mock of a library. It has all functions except those in lacks.
func mocked(lacks ...string) (*mock.Interface, library) {
	missing := map[string]bool{}
	for _, name := range lacks {
		missing[name] = true
	}
	m := &mock.Interface{
		ExtensionsFunc: func() nv.ExtendedInterface {
			return &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error {
				if missing[name] {
					return errors.New("no symbol " + name)
				}
				return nil
			}}
		},
	}
	return m, library{m}
}

func pciInfo(id, legacy string) nv.PciInfo {
	var info nv.PciInfo
	for i := range id {
		info.BusId[i] = int8(id[i])
	}
	for i := range legacy {
		info.BusIdLegacy[i] = int8(legacy[i])
	}
	return info
}

// a100 returns a GPU of go-nvml's mock that answers all queries.
func a100() *mock.Device {
	const ok = nv.SUCCESS
	mig := &mock.Device{
		GetUUIDFunc:              func() (string, nv.Return) { return "MIG-a", ok },
		GetNameFunc:              func() (string, nv.Return) { return "A100 MIG 3g.20gb", ok },
		GetMemoryInfo_v2Func:     func() (nv.Memory_v2, nv.Return) { return nv.Memory_v2{Total: 20, Used: 1, Free: 18, Reserved: 1}, ok },
		GetGpuInstanceIdFunc:     func() (int, nv.Return) { return 2, ok },
		GetComputeInstanceIdFunc: func() (int, nv.Return) { return 0, ok },
	}
	return &mock.Device{
		GetUUIDFunc:             func() (string, nv.Return) { return "GPU-a", ok },
		GetNameFunc:             func() (string, nv.Return) { return "A100", ok },
		GetPciInfoFunc:          func() (nv.PciInfo, nv.Return) { return pciInfo("00010000:3B:00.0", "0000:3B:00.0"), ok },
		GetCpuAffinityFunc:      func(int) ([]uint, nv.Return) { return []uint{0xf, 0xf0}, ok },
		GetMemoryAffinityFunc:   func(int, nv.AffinityScope) ([]uint, nv.Return) { return []uint{2}, ok },
		GetMemoryInfo_v2Func:    func() (nv.Memory_v2, nv.Return) { return nv.Memory_v2{Total: 40, Used: 1, Free: 38, Reserved: 1}, ok },
		GetMemoryInfoFunc:       func() (nv.Memory, nv.Return) { return nv.Memory{Total: 40, Used: 2, Free: 38}, ok },
		GetComputeModeFunc:      func() (nv.ComputeMode, nv.Return) { return nv.COMPUTEMODE_EXCLUSIVE_PROCESS, ok },
		GetUtilizationRatesFunc: func() (nv.Utilization, nv.Return) { return nv.Utilization{Gpu: 9, Memory: 8}, ok },
		GetEccModeFunc: func() (nv.EnableState, nv.EnableState, nv.Return) {
			return nv.FEATURE_ENABLED, nv.FEATURE_DISABLED, ok
		},
		GetTotalEccErrorsFunc: func(typ nv.MemoryErrorType, of nv.EccCounterType) (uint64, nv.Return) {
			return map[nv.EccCounterType]map[nv.MemoryErrorType]uint64{
				nv.VOLATILE_ECC:  {nv.MEMORY_ERROR_TYPE_CORRECTED: 1, nv.MEMORY_ERROR_TYPE_UNCORRECTED: 2},
				nv.AGGREGATE_ECC: {nv.MEMORY_ERROR_TYPE_CORRECTED: 3, nv.MEMORY_ERROR_TYPE_UNCORRECTED: 4},
			}[of][typ], ok
		},
		GetSramEccErrorStatusFunc: func() (nv.EccSramErrorStatus, nv.Return) {
			return nv.EccSramErrorStatus{BThresholdExceeded: 1}, ok
		},
		GetRetiredPagesFunc: func(cause nv.PageRetirementCause) ([]uint64, nv.Return) {
			if cause == nv.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR {
				return []uint64{1, 2, 3}, ok
			}
			return []uint64{4}, ok
		},
		GetRetiredPagesPendingStatusFunc: func() (nv.EnableState, nv.Return) { return nv.FEATURE_ENABLED, ok },
		GetRemappedRowsFunc:              func() (int, int, bool, bool, nv.Return) { return 5, 6, true, true, ok },
		GetCurrentClocksEventReasonsFunc: func() (uint64, nv.Return) { return 0x40, ok },
		GetFieldValuesFunc: func(values []nv.FieldValue) nv.Return {
			if len(values) != 1 || values[0].FieldId != nv.FI_DEV_GET_GPU_RECOVERY_ACTION {
				return nv.ERROR_INVALID_ARGUMENT
			}
			values[0].Value[0] = 2
			return ok
		},
		GetMigModeFunc:           func() (int, int, nv.Return) { return 1, 0, ok },
		GetMaxMigDeviceCountFunc: func() (int, nv.Return) { return 2, ok },
		GetMigDeviceHandleByIndexFunc: func(index int) (nv.Device, nv.Return) {
			if index == 1 {
				return nil, nv.ERROR_NOT_FOUND
			}
			return mig, ok
		},
		GetComputeRunningProcessesFunc: func() ([]nv.ProcessInfo, nv.Return) {
			return []nv.ProcessInfo{{Pid: 7, UsedGpuMemory: 5, GpuInstanceId: 2}, {Pid: 8, UsedGpuMemory: 1<<64 - 1, GpuInstanceId: 1<<32 - 1, ComputeInstanceId: 1<<32 - 1}}, ok
		},
		GetGraphicsRunningProcessesFunc:   func() ([]nv.ProcessInfo, nv.Return) { return nil, ok },
		GetMPSComputeRunningProcessesFunc: func() ([]nv.ProcessInfo, nv.Return) { return nil, ok },
		GetNvLinkStateFunc: func(link int) (nv.EnableState, nv.Return) {
			switch {
			case link >= 12:
				return 0, nv.ERROR_INVALID_ARGUMENT
			case link == 3:
				return nv.FEATURE_DISABLED, ok
			}
			return nv.FEATURE_ENABLED, ok
		},
		GetNvLinkRemoteDeviceTypeFunc: func(int) (nv.IntNvLinkDeviceType, nv.Return) { return nv.NVLINK_DEVICE_TYPE_SWITCH, ok },
		GetTopologyCommonAncestorFunc: func(nv.Device) (nv.GpuTopologyLevel, nv.Return) { return nv.TOPOLOGY_NODE, ok },
	}
}

func TestDriverReads(t *testing.T) {
	devices := []*mock.Device{a100(), a100()}
	devices[1].GetPciInfoFunc = func() (nv.PciInfo, nv.Return) { return pciInfo("", "0000:5E:00.0"), nv.SUCCESS }
	m, l := mocked()
	m.InitFunc = func() nv.Return { return nv.SUCCESS }
	m.SystemGetDriverVersionFunc = func() (string, nv.Return) { return "570.1", nv.SUCCESS }
	m.SystemGetCudaDriverVersion_v2Func = func() (int, nv.Return) { return 12080, nv.SUCCESS }
	m.DeviceGetCountFunc = func() (int, nv.Return) { return 3, nv.SUCCESS }
	m.DeviceGetHandleByIndexFunc = func(i int) (nv.Device, nv.Return) {
		if i == 2 {
			return nil, nv.ERROR_GPU_IS_LOST
		}
		return devices[i], nv.SUCCESS
	}
	r := Read(l, nobody)
	sound(t, r)
	two, zero := 2, 0
	want := Device{
		UUID: "GPU-a", PCI: "10000:3b:00.0", Name: "A100", CPUs: "0-3,68-71", NUMA: "1", MemoryTotal: 40, MemoryUsed: 1, MemoryFree: 38,
		MIG: true, Instances: []Instance{{UUID: "MIG-a", GPUInstance: 2, Profile: "3g.20gb", MemoryTotal: 20, MemoryUsed: 1, MemoryFree: 18}},
		ComputeMode:    ComputeExclusiveProcess,
		Processes:      []Process{{PID: 7, Type: "C", Memory: 5, GPUInstance: &two, ComputeInstance: &zero}, {PID: 8, Type: "C"}},
		UtilisationGPU: 9, UtilisationMemory: 8,
		ECC:     ECC{Enabled: true, Corrected: 1, Uncorrected: 2, AggregateCorrected: 3, AggregateUncorrected: 4, SRAMThresholdsExceeded: true},
		Retired: RetiredPages{1, 3, true}, Remapped: RemappedRows{5, 6, true, true},
		Throttle: []string{"hw_thermal_slowdown"}, Recovery: "reboot",
	}
	if r.Driver != "570.1" || r.CUDA != "12.8" || len(r.Devices) != 3 {
		t.Fatalf("%+v", r)
	}
	if !reflect.DeepEqual(r.Devices[0], want) {
		t.Errorf("got  %+v\nwant %+v", r.Devices[0], want)
	}
	if r.Devices[1].PCI != "0000:5e:00.0" || r.Devices[2].Lost == "" || r.Links[0][1] != "NV11" || r.Links[0][2] != "" {
		t.Errorf("%+v", r)
	}
}

// TestDriverOld checks that no function is called that the driver lacks, because such a call would end the
// program. The mock panics if a function without an answer is called.
func TestDriverOld(t *testing.T) {
	m, l := mocked("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryAffinity",
		"nvmlDeviceGetSramEccErrorStatus", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetFieldValues", "nvmlDeviceGetMigMode",
		"nvmlDeviceGetNvLinkState", "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetCurrentClocksEventReasons")
	d := a100()
	d.GetMemoryInfo_v2Func, d.GetMemoryAffinityFunc, d.GetSramEccErrorStatusFunc, d.GetRemappedRowsFunc = nil, nil, nil, nil
	d.GetFieldValuesFunc, d.GetMigModeFunc, d.GetNvLinkStateFunc, d.GetMPSComputeRunningProcessesFunc, d.GetCurrentClocksEventReasonsFunc = nil, nil, nil, nil, nil
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nv.Return) { return 1, nv.SUCCESS }
	m.InitFunc = func() nv.Return { return nv.SUCCESS }
	m.SystemGetDriverVersionFunc = func() (string, nv.Return) { return "367.1", nv.SUCCESS }
	m.DeviceGetCountFunc = func() (int, nv.Return) { return 1, nv.SUCCESS }
	m.DeviceGetHandleByIndexFunc = func(int) (nv.Device, nv.Return) { return d, nv.SUCCESS }
	r := Read(l, nobody)
	sound(t, r)
	got := r.Devices[0]
	if got.MemoryUsed != 2 || got.MIG || len(got.Throttle) != 1 || len(got.Processes) != 2 || r.Errors["cuda"] != "not supported: this driver has no nvmlSystemGetCudaDriverVersion" {
		t.Errorf("%+v", r)
	}
	for field, function := range map[string]string{"numa": "nvmlDeviceGetMemoryAffinity", "remapped_rows": "nvmlDeviceGetRemappedRows", "recovery": "nvmlDeviceGetFieldValues"} {
		if want := "not supported: this driver has no " + function; got.Errors[field] != want {
			t.Errorf("%s: %q, want %q", field, got.Errors[field], want)
		}
	}
	for field := range got.Errors {
		if field != "numa" && field != "remapped_rows" && field != "recovery" {
			t.Errorf("%s: %q", field, got.Errors[field])
		}
	}
}

func TestFailed(t *testing.T) {
	for ret, want := range map[nv.Return]error{
		nv.ERROR_GPU_IS_LOST: ErrLost, nv.ERROR_NOT_SUPPORTED: ErrNotSupported, nv.ERROR_NO_PERMISSION: ErrNoPermission,
		nv.ERROR_NOT_FOUND: ErrNotFound, nv.ERROR_INVALID_ARGUMENT: ErrNotFound, nv.ERROR_TIMEOUT: ErrTimeout,
		nv.ERROR_RESET_REQUIRED: ErrReset, nv.ERROR_DRIVER_NOT_LOADED: ErrNoDriver, nv.ERROR_LIBRARY_NOT_FOUND: ErrNoDriver,
	} {
		if err := failed(ret); !errors.Is(err, want) || err.Error() == "" {
			t.Errorf("%d: %v is not %v", ret, err, want)
		}
	}
	all := []error{ErrLost, ErrNotSupported, ErrNoPermission, ErrNotFound, ErrTimeout, ErrReset, ErrNoDriver}
	for _, is := range all {
		if errors.Is(failed(nv.ERROR_UNKNOWN), is) {
			t.Errorf("an unknown error is %v", is)
		}
	}
	if failed(nv.SUCCESS) != nil {
		t.Error("success has failed")
	}
}

func TestDriverEvents(t *testing.T) {
	d := a100()
	var registered uint64
	d.GetSupportedEventTypesFunc = func() (uint64, nv.Return) {
		return nv.EventTypeXidCriticalError | nv.EventTypeDoubleBitEccError | nv.EventTypeClock, nv.SUCCESS
	}
	d.RegisterEventsFunc = func(types uint64, _ nv.EventSet) nv.Return { registered = types; return nv.SUCCESS }
	tells := []nv.EventData{
		{Device: d, EventType: nv.EventTypeClock},
		{Device: d, EventType: nv.EventTypeXidCriticalError, EventData: 48, GpuInstanceId: 4, ComputeInstanceId: 1<<32 - 1},
	}
	set := &mock.EventSet{
		WaitFunc: func(ms uint32) (nv.EventData, nv.Return) {
			if ms > 60_000 {
				t.Errorf("waits %d ms", ms)
			}
			if len(tells) == 0 {
				return nv.EventData{}, nv.ERROR_TIMEOUT
			}
			next := tells[0]
			tells = tells[1:]
			return next, nv.SUCCESS
		},
		FreeFunc: func() nv.Return { return nv.SUCCESS },
	}
	m, l := mocked()
	m.EventSetCreateFunc = func() (nv.EventSet, nv.Return) { return set, nv.SUCCESS }
	e, err := l.Events()
	if err != nil {
		t.Fatal(err)
	}
	g := device{d, l}
	if err := e.Add(g); err != nil || registered != nv.EventTypeXidCriticalError|nv.EventTypeDoubleBitEccError {
		t.Errorf("registered %#x: %v", registered, err)
	}
	four := 4
	o, err := e.Wait(time.Minute)
	if want := (Occurrence{GPU: g, Kind: EventXID, Data: 48, GPUInstance: &four}); err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o.GPU != GPU(g) {
		t.Error("the GPU of an event is not equal to the same GPU")
	}
	if _, err := e.Wait(time.Minute); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	if err := e.Free(); err != nil {
		t.Error(err)
	}
	d.GetSupportedEventTypesFunc = func() (uint64, nv.Return) { return nv.EventTypeClock, nv.SUCCESS }
	if err := e.Add(g); !errors.Is(err, ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	// Drivers before MIG do not set the IDs.
	tells = []nv.EventData{{Device: d, EventType: nv.EventTypeSingleBitEccError}}
	_, old := mocked("nvmlEventSetWait_v2")
	if o, err := (events{set, old}).Wait(time.Minute); err != nil || o.GPUInstance != nil || o.Kind != EventECCSingle {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestAncestor(t *testing.T) {
	_, l := mocked()
	for level, want := range map[nv.GpuTopologyLevel]job.Link{
		nv.TOPOLOGY_INTERNAL: "PSB", nv.TOPOLOGY_SINGLE: "PIX", nv.TOPOLOGY_MULTIPLE: "PXB",
		nv.TOPOLOGY_HOSTBRIDGE: "PHB", nv.TOPOLOGY_NODE: "NODE", nv.TOPOLOGY_SYSTEM: "SYS", 35: "",
	} {
		a, b := a100(), a100()
		a.GetTopologyCommonAncestorFunc = func(to nv.Device) (nv.GpuTopologyLevel, nv.Return) {
			if to != nv.Device(b) {
				t.Error("asked for another GPU")
			}
			return level, nv.SUCCESS
		}
		if got, err := (device{a, l}).Ancestor(device{b, l}); got != want || (err == nil) != (want != "") {
			t.Errorf("%d: %q, %v", level, got, err)
		}
	}
}

// TestDriverHere reads the driver of this host, if it has one.
func TestDriverHere(t *testing.T) {
	r := Read(Driver(), nobody)
	sound(t, r)
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		if !r.NoDriver || r.Failed == "" || len(r.Devices) > 0 {
			t.Errorf("a host without a driver: %+v", r)
		}
	} else if r.Driver == "" && r.Failed == "" {
		t.Errorf("a host with a driver: %+v", r)
	}
}
