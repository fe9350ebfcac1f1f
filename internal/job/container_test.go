package job_test

import (
	"fmt"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMounted checks the mounts that a job names and those that gangrun adds.
func TestMounted(t *testing.T) {
	for _, c := range []struct {
		name   string
		mounts []string
		want   string
	}{
		{"none named", nil, "[/ckpt:rw /work/data /abs/data]"},
		{"the directory above is read-only", []string{"/work", "/"}, ""},
		{"the directory above the inputs", []string{".", "/abs:ro"}, "[/work /abs /ckpt:rw]"},
		{"another directory in its place", []string{"/scratch:/ckpt:rw", "/set:/abs/data"}, "[/scratch:/ckpt:rw /set:/abs/data /work/data]"},
		{"in its place, read-only", []string{"/ckpt"}, "[/ckpt /work/data /abs/data]"},
		{"in its place, of another directory, read-only", []string{"/scratch:/ckpt"}, "[/scratch:/ckpt /work/data /abs/data]"},
	} {
		s := job.Spec{Workdir: "/work", Inputs: []string{"data", "/abs/data"}, CheckpointDir: "/ckpt", Image: "x:1", Container: job.Container{Mounts: c.mounts}}
		have, err := s.Mounted()
		if c.want == "" && err == nil || c.want != "" && (err != nil || fmt.Sprint(have) != c.want) {
			t.Errorf("%s: %v, %v, want %s", c.name, have, err, c.want)
		}
	}
}

func TestBoxAt(t *testing.T) {
	b := job.Box{Mounts: []job.Mount{{Source: "/a", Target: "/data"}, {Source: "/b", Target: "/data/in"}, {Source: "/c", Target: "/data"}}}
	for path, want := range map[string]string{"/data": "/c", "/data/x": "/c", "/data/in": "/b", "/data/in/x": "/b", "/database": "", "/": ""} {
		at, ok := b.At(path)
		if at.Source != want || ok != (want != "") {
			t.Errorf("%s is in %v, %v, want %q", path, at, ok, want)
		}
	}
}
