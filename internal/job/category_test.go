package job_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// designed has the categories that the design lists, with their properties. Programs rely on the slugs.
var designed = []struct {
	slug    job.Category
	fault   job.Fault
	action  job.Action
	charged bool
}{
	{"incorrect-inputs", "user", "never", true},
	{"semantic-error", "user", "never", true},
	{"syntax-error", "user", "never", true},
	{"import-error", "user", "never", true},
	{"permission-error", "user", "never", true},
	{"traceback", "user", "once", true},
	{"assertion", "user", "never", true},
	{"cpu-oom", "user", "never", true},
	{"gpu-oom", "user", "never", true},
	{"model-diverged", "user", "never", true},
	{"output-error", "user", "never", true},

	{"core-dump", "either", "once", true},
	{"invalid-memory-access", "either", "once", true},
	{"killed", "either", "once", true},

	{"cuda-failure", "engine", "elsewhere", true},
	{"cuda-init", "engine", "elsewhere", true},
	{"cuda-version", "engine", "never", true},
	{"missing-library", "engine", "never", true},
	{"mpi-error", "engine", "once", true},
	{"collective-timeout", "engine", "again", true},

	{"mpi-runtime", "infrastructure", "again", true},
	{"checkpoint-error", "infrastructure", "again", true},
	{"storage-error", "infrastructure", "again", true},
	{"disk-full", "infrastructure", "never", true},
	{"gpu-hardware", "infrastructure", "elsewhere", true},
	{"host-lost", "infrastructure", "elsewhere", true},
	{"network-error", "infrastructure", "again", true},
	{"port-in-use", "infrastructure", "again", true},
	{"preempted", "infrastructure", "again", false},
	{"launch-error", "infrastructure", "never", true},

	{"hang", "run", "again", true},
	{"straggler", "run", "never", true},
	{"time-limit", "run", "never", true},
	{"cancelled", "run", "never", true},
	{"stopped-early", "run", "never", true},
	{"unknown", "run", "once", true},
}

func TestCategories(t *testing.T) {
	all := job.Categories()
	if len(all) != len(designed) {
		t.Fatalf("there are %d categories, the design has %d", len(all), len(designed))
	}
	for i, want := range designed {
		c := all[i]
		if c != want.slug || c.Fault() != want.fault || c.Action() != want.action || c.Charged() != want.charged {
			t.Errorf("category %d is %s: fault %s, action %s, charged %t; want %+v", i, c, c.Fault(), c.Action(), c.Charged(), want)
		}
	}
}

// TestStrangeCategory checks that a category counts as unknown if only a newer gangrun knows it.
func TestStrangeCategory(t *testing.T) {
	for _, c := range []job.Category{"", "solar-flare"} {
		if c.Fault() != job.Unknown.Fault() || c.Action() != job.Unknown.Action() || !c.Charged() {
			t.Errorf("%q: fault %s, action %s, charged %t, want those of unknown", c, c.Fault(), c.Action(), c.Charged())
		}
	}
}

func TestCategoriesIsACopy(t *testing.T) {
	job.Categories()[0] = "changed"
	if got := job.Categories()[0]; got != job.IncorrectInputs {
		t.Errorf("a caller changed the list: its first is %q", got)
	}
}
