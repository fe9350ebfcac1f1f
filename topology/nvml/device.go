//go:build cgo && linux

package nvml

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gangrun/gangrun/internal/job"
)

// device is a GPU or MIG device.
type device struct {
	nv.Device
	lib library
}

// numbers returns the values of a call as an Answer.
func numbers[T ~int | ~int32 | ~uint32 | ~uint64](ret nv.Return, values ...T) (Answer, error) {
	var a Answer
	if err := failed(ret); err != nil {
		return a, err
	}
	for i, v := range values {
		a.Numbers[i] = uint64(v)
	}
	return a, nil
}

func unknown(q Query) error {
	return &problem{fmt.Sprintf("query %d is not known", q), ErrNotSupported}
}

// needs has the functions without which a query cannot be answered. Some of them exist only in drivers since
// 2024, and the drivers of small boards lack many. QueryThrottle has two such functions, of which one is
// enough.
var needs = map[Query][]string{
	QueryUUID: {"nvmlDeviceGetUUID"}, QueryName: {"nvmlDeviceGetName"}, QueryPCI: {"nvmlDeviceGetPciInfo"},
	QueryCPUs: {"nvmlDeviceGetCpuAffinity"}, QueryNUMA: {"nvmlDeviceGetMemoryAffinity"},
	QueryMemory:      {"nvmlDeviceGetMemoryInfo"},
	QueryComputeMode: {"nvmlDeviceGetComputeMode"}, QueryUtilisation: {"nvmlDeviceGetUtilizationRates"},
	QueryECCMode: {"nvmlDeviceGetEccMode"}, QueryECC: {"nvmlDeviceGetTotalEccErrors"}, QuerySRAM: {"nvmlDeviceGetSramEccErrorStatus"},
	QueryRetired:  {"nvmlDeviceGetRetiredPages", "nvmlDeviceGetRetiredPagesPendingStatus"},
	QueryRemapped: {"nvmlDeviceGetRemappedRows"}, QueryRecovery: {"nvmlDeviceGetFieldValues"},
	QueryMIG: {"nvmlDeviceGetMigMode"}, QueryInstances: {"nvmlDeviceGetMaxMigDeviceCount"},
	QueryGPUInstance: {"nvmlDeviceGetGpuInstanceId"}, QueryComputeInstance: {"nvmlDeviceGetComputeInstanceId"},
	QueryLink: {"nvmlDeviceGetNvLinkState"}, QueryPeer: {"nvmlDeviceGetNvLinkRemotePciInfo"},
	QueryPeerKind: {"nvmlDeviceGetNvLinkRemoteDeviceType"},
	QueryPower:    {"nvmlDeviceGetPowerUsage"}, QueryClock: {"nvmlDeviceGetClockInfo"}, QueryTemperature: {"nvmlDeviceGetTemperature"},
	QueryPCILink:    {"nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth"},
	QueryLinkErrors: {"nvmlDeviceGetNvLinkErrorCounter"},
	QueryCompute:    {"nvmlDeviceGetComputeRunningProcesses"}, QueryGraphics: {"nvmlDeviceGetGraphicsRunningProcesses"},
	QueryMPS: {"nvmlDeviceGetMPSComputeRunningProcesses"},
}

// The sizes of the sets that are queried. They are larger than on any machine.
const (
	maxCPUs  = 8192
	maxNodes = 1024
)

func (d device) Ask(q Query, n int) (Answer, error) {
	if err := d.lib.has(needs[q]...); err != nil {
		return Answer{}, err
	}
	switch q {
	case QueryUUID:
		text, ret := d.GetUUID()
		return Answer{Text: text}, failed(ret)
	case QueryName:
		text, ret := d.GetName()
		return Answer{Text: text}, failed(ret)
	case QueryPCI:
		info, ret := d.GetPciInfo()
		return Answer{Text: busIDOf(info)}, failed(ret)
	case QueryCPUs:
		mask, ret := d.GetCpuAffinity(maxCPUs / 8) // go-nvml needs one word for each 8 of them
		return Answer{Mask: words(mask)}, failed(ret)
	case QueryNUMA:
		mask, ret := d.GetMemoryAffinity(maxNodes/8, nv.AFFINITY_SCOPE_NODE)
		return Answer{Mask: words(mask)}, failed(ret)
	case QueryMemory:
		return d.memory()
	case QueryComputeMode:
		mode, ret := d.GetComputeMode()
		return numbers(ret, mode)
	case QueryUtilisation:
		u, ret := d.GetUtilizationRates()
		return numbers(ret, u.Gpu, u.Memory)
	case QueryECCMode:
		mode, _, ret := d.GetEccMode()
		return numbers(ret, mode)
	case QueryECC:
		return d.ecc()
	case QuerySRAM:
		status, ret := d.GetSramEccErrorStatus()
		return numbers(ret, status.BThresholdExceeded)
	case QueryRetired:
		return d.retired()
	case QueryRemapped:
		corrected, uncorrected, pending, failure, ret := d.GetRemappedRows()
		return numbers(ret, corrected, uncorrected, number(pending), number(failure))
	case QueryThrottle:
		return d.throttle()
	case QueryRecovery:
		return d.recovery()
	case QueryMIG:
		mode, _, ret := d.GetMigMode()
		return numbers(ret, mode)
	case QueryInstances:
		count, ret := d.GetMaxMigDeviceCount()
		return numbers(ret, count)
	case QueryGPUInstance:
		id, ret := d.GetGpuInstanceId()
		return numbers(ret, id)
	case QueryComputeInstance:
		id, ret := d.GetComputeInstanceId()
		return numbers(ret, id)
	case QueryLink:
		state, ret := d.GetNvLinkState(n)
		return numbers(ret, state)
	case QueryPeer:
		info, ret := d.GetNvLinkRemotePciInfo(n)
		return Answer{Text: busIDOf(info)}, failed(ret)
	case QueryPeerKind:
		return d.peerKind(n)
	}
	return d.askLoad(q, n)
}

// memory queries the memory of the GPU. Newer drivers report the memory that they reserve as a separate number.
func (d device) memory() (Answer, error) {
	if d.lib.has("nvmlDeviceGetMemoryInfo_v2") == nil {
		if m, ret := d.GetMemoryInfo_v2(); ret == nv.SUCCESS {
			return numbers(ret, m.Total, m.Used, m.Free)
		}
	}
	m, ret := d.GetMemoryInfo()
	return numbers(ret, m.Total, m.Used, m.Free)
}

func (d device) ecc() (Answer, error) {
	var a Answer
	var errs []error
	for i, count := range []struct {
		what string
		typ  nv.MemoryErrorType
		of   nv.EccCounterType
	}{
		{"corrected errors", nv.MEMORY_ERROR_TYPE_CORRECTED, nv.VOLATILE_ECC},
		{"uncorrected errors", nv.MEMORY_ERROR_TYPE_UNCORRECTED, nv.VOLATILE_ECC},
		{"corrected errors of its life", nv.MEMORY_ERROR_TYPE_CORRECTED, nv.AGGREGATE_ECC},
		{"uncorrected errors of its life", nv.MEMORY_ERROR_TYPE_UNCORRECTED, nv.AGGREGATE_ECC},
	} {
		n, ret := d.GetTotalEccErrors(count.typ, count.of)
		if err := failed(ret); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", count.what, err))
			continue
		}
		a.Numbers[i] = n
	}
	return a, errors.Join(errs...)
}

func (d device) retired() (Answer, error) {
	single, ret := d.GetRetiredPages(nv.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)
	if ret != nv.SUCCESS {
		return Answer{}, failed(ret)
	}
	double, ret := d.GetRetiredPages(nv.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
	if ret != nv.SUCCESS {
		return Answer{}, failed(ret)
	}
	pending, ret := d.GetRetiredPagesPendingStatus()
	return numbers(ret, len(single), len(double), int(pending))
}

// throttle queries the reasons for throttling. It uses the newer of the two names of the function, if the
// driver has it.
func (d device) throttle() (Answer, error) {
	read := d.GetCurrentClocksEventReasons
	if d.lib.has("nvmlDeviceGetCurrentClocksEventReasons") != nil {
		if err := d.lib.has("nvmlDeviceGetCurrentClocksThrottleReasons"); err != nil {
			return Answer{}, err
		}
		read = d.GetCurrentClocksThrottleReasons
	}
	mask, ret := read()
	return numbers(ret, mask)
}

func (d device) recovery() (Answer, error) {
	value := []nv.FieldValue{{FieldId: nv.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	ret := d.GetFieldValues(value)
	if ret == nv.SUCCESS {
		ret = nv.Return(value[0].NvmlReturn)
	}
	if ret == nv.ERROR_INVALID_ARGUMENT {
		ret = nv.ERROR_NOT_SUPPORTED // a driver that does not know the field
	}
	return numbers(ret, binary.NativeEndian.Uint32(value[0].Value[:4]))
}

func (d device) peerKind(n int) (Answer, error) {
	kind, ret := d.GetNvLinkRemoteDeviceType(n)
	if err := failed(ret); err != nil {
		return Answer{}, err
	}
	peer := PeerUnknown
	switch kind {
	case nv.NVLINK_DEVICE_TYPE_GPU:
		peer = PeerGPU
	case nv.NVLINK_DEVICE_TYPE_IBMNPU:
		peer = PeerNPU
	case nv.NVLINK_DEVICE_TYPE_SWITCH:
		peer = PeerSwitch
	}
	return numbers(nv.SUCCESS, peer)
}

func (d device) Processes(q Query) ([]Process, error) {
	if err := d.lib.has(needs[q]...); err != nil {
		return nil, err
	}
	var read func() ([]nv.ProcessInfo, nv.Return)
	switch q {
	case QueryCompute:
		read = d.GetComputeRunningProcesses
	case QueryGraphics:
		read = d.GetGraphicsRunningProcesses
	case QueryMPS:
		read = d.GetMPSComputeRunningProcesses
	default:
		return nil, unknown(q)
	}
	found, ret := read()
	if err := failed(ret); err != nil {
		return nil, err
	}
	var processes []Process
	for _, p := range found {
		processes = append(processes, Process{
			PID: int(p.Pid), Memory: amount(p.UsedGpuMemory),
			GPUInstance: part(p.GpuInstanceId), ComputeInstance: part(p.ComputeInstanceId),
		})
	}
	return processes, nil
}

func (d device) Instance(index int) (GPU, error) {
	if err := d.lib.has("nvmlDeviceGetMigDeviceHandleByIndex"); err != nil {
		return nil, err
	}
	mig, ret := d.GetMigDeviceHandleByIndex(index)
	if err := failed(ret); err != nil {
		return nil, err
	}
	return device{mig, d.lib}, nil
}

func (d device) Ancestor(other GPU) (job.Link, error) {
	o, ok := other.(device)
	if !ok {
		return "", &problem{fmt.Sprintf("%T is no GPU of this driver", other), ErrNotFound}
	}
	if err := d.lib.has("nvmlDeviceGetTopologyCommonAncestor"); err != nil {
		return "", err
	}
	level, ret := d.GetTopologyCommonAncestor(o.Device)
	if err := failed(ret); err != nil {
		return "", err
	}
	switch level {
	case nv.TOPOLOGY_INTERNAL:
		return job.LinkPSB, nil
	case nv.TOPOLOGY_SINGLE:
		return job.LinkPIX, nil
	case nv.TOPOLOGY_MULTIPLE:
		return job.LinkPXB, nil
	case nv.TOPOLOGY_HOSTBRIDGE:
		return job.LinkPHB, nil
	case nv.TOPOLOGY_NODE:
		return job.LinkNODE, nil
	case nv.TOPOLOGY_SYSTEM:
		return job.LinkSYS, nil
	}
	return "", &problem{fmt.Sprintf("%d is no topology level that is known", level), nil}
}

// part returns the ID of a MIG instance, or nil if NVML says that there is none.
func part(id uint32) *int {
	const none = 1<<32 - 1
	if id == none {
		return nil
	}
	n := int(id)
	return &n
}

// busIDOf returns the bus ID with the longer domain, or the other one, because drivers before 2018 leave the
// former empty.
func busIDOf(info nv.PciInfo) string {
	return cmp.Or(textOf(info.BusId[:]), textOf(info.BusIdLegacy[:]))
}

// textOf converts a C string, which ends with a 0 byte.
func textOf(chars []int8) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

func words(mask []uint) []uint64 {
	all := make([]uint64, len(mask))
	for i, word := range mask {
		all[i] = uint64(word)
	}
	return all
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
