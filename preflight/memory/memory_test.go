package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestMemoryLifetime(t *testing.T) {
	m := Memory{Dir: filepath.Join(t.TempDir(), "home", "trials")}
	if _, ok := m.Recall("k", noon); ok {
		t.Error("recalled what was never remembered")
	}
	if err := m.Remember("k", Passed{Time: noon}); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]bool{
		0: true, Lifetime - 1: true, Lifetime: false, -time.Second: false,
	} {
		passed, ok := m.Recall("k", noon.Add(after))
		if ok != want || ok && !passed.Time.Equal(noon) {
			t.Errorf("after %v: %v, %v", after, passed, ok)
		}
	}
	if _, ok := m.Recall("other", noon); ok {
		t.Error("recalled another key")
	}
	info, err := os.Stat(filepath.Join(m.Dir, "k.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
}

// TestMemoryWireup: the Memory keeps what a trial showed about MPI. An entry of an older version of gangrun has
// no Wireup.
func TestMemoryWireup(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	up := &job.Wireup{MPI: job.MPINone, In: []int{}, Silent: []int{0}, Library: "/usr/lib/libmpi.so.40", Lasting: true}
	if err := m.Remember("k", Passed{Time: noon, Wireup: up}); err != nil {
		t.Fatal(err)
	}
	if passed, ok := m.Recall("k", noon); !ok || !reflect.DeepEqual(passed.Wireup, up) {
		t.Errorf("recalled %+v, %v", passed.Wireup, ok)
	}
	old := `{"key":"old","passed":"2026-01-01T12:00:00Z"}`
	if err := os.WriteFile(filepath.Join(m.Dir, "old.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if passed, ok := m.Recall("old", noon); !ok || !passed.Time.Equal(noon) || passed.Wireup != nil {
		t.Errorf("recalled %+v, %v", passed, ok)
	}
}

func TestMemoryZero(t *testing.T) {
	var m Memory
	if err := m.Remember("k", Passed{Time: noon}); err != nil {
		t.Error(err)
	}
	if _, ok := m.Recall("k", noon); ok {
		t.Error("the zero memory remembers")
	}
}

func TestMemoryCorrupt(t *testing.T) {
	for _, content := range []string{"", "{", "null", `{"key":"other","passed":"2026-01-01T12:00:00Z"}`, `{"key":"k"}`, `{"key":"k","passed":1}`} {
		m := Memory{Dir: t.TempDir()}
		path := filepath.Join(m.Dir, "k.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Recall("k", noon); ok {
			t.Errorf("%q was recalled", content)
		}
		if err := m.Remember("l", Passed{Time: noon}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%q was not swept: %v", content, err)
		}
		if err := m.Remember("k", Passed{Time: noon}); err != nil {
			t.Error(err)
		}
		if _, ok := m.Recall("k", noon); !ok {
			t.Errorf("not remembered over %q", content)
		}
	}
}

func TestMemorySweep(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	if err := m.Remember("old", Passed{Time: noon.Add(-Lifetime)}); err != nil {
		t.Fatal(err)
	}
	if err := m.Remember("young", Passed{Time: noon.Add(-time.Minute)}); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{".a.1.tmp": 2 * Lifetime, ".b.2.tmp": time.Second} {
		path := filepath.Join(m.Dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, noon.Add(-age), noon.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Remember("new", Passed{Time: noon}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if want := []string{".b.2.tmp", "new.json", "young.json"}; !slices.Equal(have, want) {
		t.Errorf("files %q, want %q", have, want)
	}
}

func TestMemoryConcurrent(t *testing.T) {
	m := Memory{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 5 {
				if err := m.Remember(fmt.Sprint("k", n), Passed{Time: noon.Add(time.Duration(i) * time.Second)}); err != nil {
					t.Error(err)
				}
				m.Recall("k0", noon.Add(time.Minute))
			}
		})
	}
	wg.Wait()
	for n := range 5 {
		if _, ok := m.Recall(fmt.Sprint("k", n), noon.Add(time.Minute)); !ok {
			t.Errorf("k%d is lost", n)
		}
	}
}
