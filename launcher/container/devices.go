package container

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// GPUKind is the kind of NVIDIA's GPUs in the Container Device Interface (CDI).
const GPUKind = "nvidia.com/gpu"

// Devices has the GPUs of the host that a container may use. A container may always use all InfiniBand and RoCE
// devices.
type Devices struct {
	GPUs []string // UUIDs
	Kind string   // the kind of the GPUs in CDI; empty means GPUKind
	Dirs []string // directories with CDI's files; empty means /etc/cdi and /var/run/cdi
}

func (d Devices) dirs() []string {
	if len(d.Dirs) > 0 {
		return d.Dirs
	}
	return cdi.DefaultSpecDirs
}

// DeviceError reports that a container cannot get devices.
type DeviceError struct {
	Devices []string // their names in CDI
	Err     error
}

// Error names the devices.
func (e *DeviceError) Error() string {
	return fmt.Sprintf("the Container Device Interface cannot give the container %s: %v", strings.Join(e.Devices, ", "), e.Err)
}

// Unwrap returns the error of CDI.
func (e *DeviceError) Unwrap() error { return e.Err }

// option adds the devices to the specification of a container. Where CDI knows none of the GPUs, and
// NVIDIA's hook for OCI runtimes is installed, that hook adds them.
func (d Devices) option() oci.SpecOpts {
	return func(ctx context.Context, c oci.Client, container *containers.Container, s *specs.Spec) error {
		paths, _ := filepath.Glob("/dev/infiniband/*")
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeCharDevice == 0 {
				continue // udev has directories of links there
			}
			if err := oci.WithLinuxDevice(path, "rwm")(ctx, c, container, s); err != nil {
				return err
			}
		}
		if len(d.GPUs) == 0 {
			return nil
		}
		kind := d.Kind
		if kind == "" {
			kind = GPUKind
		}
		names := make([]string, len(d.GPUs))
		for i, gpu := range d.GPUs {
			names[i] = kind + "=" + gpu
		}
		// A description that is not valid may be another vendor's: InjectDevices returns an error if it
		// matters.
		cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(d.dirs()...))
		if err == nil {
			_, err = cache.InjectDevices(s, names...)
		}
		if err == nil {
			return nil
		}
		if hook, hookErr := exec.LookPath(nvidiaHook); hookErr == nil && kind == GPUKind {
			return d.hook(hook, s)
		}
		return &DeviceError{Devices: names, Err: err}
	}
}

// nvidiaHook is the program of nvidia-container-toolkit that adds GPUs to a container before it
// starts. It reads NVIDIA_VISIBLE_DEVICES in the specification of the container.
const nvidiaHook = "nvidia-container-runtime-hook"

// hook has NVIDIA's hook add the GPUs.
func (d Devices) hook(path string, s *specs.Spec) error {
	if s.Hooks == nil {
		s.Hooks = &specs.Hooks{}
	}
	//lint:ignore SA1019 the hook is documented for it
	s.Hooks.Prestart = append(s.Hooks.Prestart, specs.Hook{Path: path, Args: []string{nvidiaHook, "prestart"}})
	s.Process.Env = append(s.Process.Env, "NVIDIA_VISIBLE_DEVICES="+strings.Join(d.GPUs, ","), "NVIDIA_DRIVER_CAPABILITIES=all")
	return nil
}
