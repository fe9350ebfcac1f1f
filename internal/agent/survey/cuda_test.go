package survey

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/gangrun/gangrun/internal/job"
)

// TestCUDA tests trees of files as they are in images.
func TestCUDA(t *testing.T) {
	library := func(name, version string) job.VersionFact {
		return job.VersionFact{Kind: job.VersionLibrary, Name: name, Version: version}
	}
	pack := func(name, version string) job.VersionFact {
		return job.VersionFact{Kind: job.VersionPython, Name: name, Version: version}
	}
	const (
		driver  = "sys/module/nvidia/version"
		toolkit = "usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12.4.127"
		compat  = "usr/local/cuda-12.4/compat/libcuda.so.550.54.15"
	)
	for _, c := range []struct {
		name  string
		files []string
		list  []job.VersionFact
		env   []string
		want  string
	}{
		{"no driver", []string{toolkit}, nil, nil, "<nil>"},
		{"no CUDA", []string{driver}, []job.VersionFact{library("libc.so.6", "6 build 12"), pack("numpy", "2.1")}, nil, "<nil>"},
		{"the program's library", []string{driver, toolkit}, []job.VersionFact{library("libcudart.so.11.0", "11.8.89 build 1234")}, nil, "&{470.256.02 11.8 libcudart.so.11.0 true   false}"},
		{"a library without its version", []string{driver, toolkit}, []job.VersionFact{library("libcudart.so.12", "12 build 1234")}, nil, "&{470.256.02 12.4 /" + toolkit + " false   false}"},
		{"a package", []string{driver}, []job.VersionFact{pack("nvidia-cuda-runtime-cu12", "12.1.105"), pack("torch", "2.3.0+cu118")}, nil, "&{470.256.02 12.1 nvidia-cuda-runtime-cu12 true   false}"},
		{"torch", []string{driver}, []job.VersionFact{pack("torch", "2.3.0+cu118")}, nil, "&{470.256.02 11.8 torch 2.3.0+cu118 true   false}"},
		{"torch for CPUs", []string{driver}, []job.VersionFact{pack("torch", "2.3.0+cpu"), pack("x", "1+cuda")}, nil, "<nil>"},
		{"a toolkit", []string{driver, toolkit}, nil, nil, "&{470.256.02 12.4 /" + toolkit + " false   false}"},
		{"LD_LIBRARY_PATH first", []string{driver, toolkit, "opt/lib/libcudart.so.11.8.89", "opt/lib/libcudart.so.11.0"}, nil, []string{"LD_LIBRARY_PATH=/nosuch:/opt/lib"}, "&{470.256.02 11.8 /opt/lib/libcudart.so.11.8.89 false   false}"},
		{"the newest one", []string{driver, "usr/lib64/libcudart.so.11.8.89", "usr/lib64/libcudart.so.11.10.1"}, nil, nil, "&{470.256.02 11.10 /usr/lib64/libcudart.so.11.10.1 false   false}"},
		{"a variable of the image", []string{driver}, nil, []string{"CUDA_VERSION=12.4.1"}, "&{470.256.02 12.4 CUDA_VERSION false   false}"},
		{"forward compatibility", []string{driver, toolkit, compat}, nil, nil, "&{470.256.02 12.4 /" + toolkit + " false 550.54.15 /" + compat + " false}"},
		{"forward compatibility first", []string{driver, toolkit, compat}, nil, []string{"LD_LIBRARY_PATH=/usr/local/cuda-12.4/compat/"}, "&{470.256.02 12.4 /" + toolkit + " false 550.54.15 /" + compat + " true}"},
	} {
		files := fstest.MapFS{}
		for _, name := range c.files {
			files[name] = &fstest.MapFile{Data: []byte("470.256.02\n")}
		}
		if got := fmt.Sprint(cuda(files, c.list, c.env)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNCCL(t *testing.T) {
	files := fstest.MapFS{"usr/lib/x86_64-linux-gnu/libnccl.so.2": {}, "usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5": {}}
	if got := withNCCL(files, nil, nil); len(got) != 1 || got[0] != (job.VersionFact{Kind: job.VersionLibrary, Name: "libnccl.so.2", Version: "2.21.5"}) {
		t.Errorf("%+v", got)
	}
	own := []job.VersionFact{{Kind: job.VersionPython, Name: "nvidia-nccl-cu12", Version: "2.20.5"}}
	if got := withNCCL(files, own, nil); len(got) != 1 || got[0] != own[0] {
		t.Errorf("%+v", got)
	}
	if got := withNCCL(fstest.MapFS{}, nil, nil); got != nil {
		t.Errorf("%+v", got)
	}
}
