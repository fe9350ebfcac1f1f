//go:build cgo && linux

package nvml

import (
	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Driver returns the NVML library of this host's driver, libnvidia-ml.so.1. Init loads the
// library, which then stays loaded until the program ends.
func Driver() Library { return library{nv.New()} }

// problem is the error that NVML returned for a call.
type problem struct {
	text string
	is   error // the Fault of the error, or nil
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.is }

// failed returns ret as an error, or nil if ret is success.
func failed(ret nv.Return) error {
	if ret == nv.SUCCESS {
		return nil
	}
	p := &problem{text: ret.Error()}
	switch ret {
	case nv.ERROR_LIBRARY_NOT_FOUND, nv.ERROR_DRIVER_NOT_LOADED:
		p.is = ErrNoDriver
	case nv.ERROR_NOT_SUPPORTED, nv.ERROR_FUNCTION_NOT_FOUND, nv.ERROR_ARGUMENT_VERSION_MISMATCH, nv.ERROR_VGPU_ECC_NOT_SUPPORTED:
		p.is = ErrNotSupported
	case nv.ERROR_NO_PERMISSION:
		p.is = ErrNoPermission
	case nv.ERROR_NOT_FOUND, nv.ERROR_INVALID_ARGUMENT:
		p.is = ErrNotFound
	case nv.ERROR_GPU_IS_LOST:
		p.is = ErrLost
	case nv.ERROR_RESET_REQUIRED:
		p.is = ErrReset
	case nv.ERROR_TIMEOUT:
		p.is = ErrTimeout
	}
	return p
}

type library struct{ nv.Interface }

// has returns an error if the driver lacks one of the functions. Calling a missing function would
// end the program.
func (l library) has(functions ...string) error {
	for _, function := range functions {
		if err := l.Extensions().LookupSymbol(function); err != nil {
			return &problem{"this driver has no " + function, ErrNotSupported}
		}
	}
	return nil
}

func (l library) Init() error {
	ret := l.Interface.Init()
	if ret == nv.ERROR_LIBRARY_NOT_FOUND {
		return &problem{"libnvidia-ml.so.1 cannot be loaded", ErrNoDriver}
	}
	return failed(ret)
}

func (l library) Ask(q Query) (Answer, error) {
	switch q {
	case QueryDriver:
		if err := l.has("nvmlSystemGetDriverVersion"); err != nil {
			return Answer{}, err
		}
		text, ret := l.SystemGetDriverVersion()
		return Answer{Text: text}, failed(ret)
	case QueryCUDA:
		read := l.SystemGetCudaDriverVersion_v2 // this function does not load a CUDA library
		if l.has("nvmlSystemGetCudaDriverVersion_v2") != nil {
			if err := l.has("nvmlSystemGetCudaDriverVersion"); err != nil {
				return Answer{}, err
			}
			read = l.SystemGetCudaDriverVersion
		}
		n, ret := read()
		return numbers(ret, n)
	case QueryCount:
		if err := l.has("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"); err != nil {
			return Answer{}, err
		}
		n, ret := l.DeviceGetCount()
		return numbers(ret, n)
	}
	return Answer{}, unknown(q)
}

func (l library) GPU(index int) (GPU, error) {
	d, ret := l.DeviceGetHandleByIndex(index)
	if err := failed(ret); err != nil {
		return nil, err
	}
	return device{d, l}, nil
}

func (l library) Events() (EventSet, error) {
	if err := l.has("nvmlEventSetCreate", "nvmlEventSetWait", "nvmlEventSetFree", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents"); err != nil {
		return nil, err
	}
	set, ret := l.EventSetCreate()
	if err := failed(ret); err != nil {
		return nil, err
	}
	return events{set, l}, nil
}
