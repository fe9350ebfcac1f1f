package controller

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

// weights writes a checkpoint that has one number.
func weights(t *testing.T, dir, name string, value float64) {
	t.Helper()
	header := `{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	data = append(data, header...)
	data = binary.LittleEndian.AppendUint64(data, math.Float64bits(value))
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestResumeAfterDivergence: a run that resumes does not start from NaN if the job has diverged before. Later looks, as those
// while ranks are waited for, do not read all numbers.
func TestResumeAfterDivergence(t *testing.T) {
	dir := t.TempDir()
	weights(t, dir, "step-5.safetensors", 1)
	weights(t, dir, "step-9.safetensors", math.NaN())
	for _, c := range []struct {
		spoilt, resume bool
		want           string
	}{{true, true, "step-5.safetensors"}, {false, true, "step-9.safetensors"}} {
		asked := 0
		found := &checkpoints{resume: c.resume, spoilt: func(context.Context) bool { asked++; return c.spoilt }}
		got, notes, err := found.Newest(t.Context(), dir, nil)
		if err != nil || got == nil || filepath.Base(got.Path) != c.want || c.spoilt != strings.Contains(strings.Join(notes, ""), "NaN") {
			t.Errorf("%+v: got %+v, %q, %v", c, got, notes, err)
		}
		if got, _, err = found.Newest(t.Context(), dir, nil); err != nil || got == nil || filepath.Base(got.Path) != "step-9.safetensors" || asked != 1 {
			t.Errorf("%+v: later got %+v, %v; asked %d times", c, got, err, asked)
		}
	}
}

// TestDivergedBefore: only the newest earlier run of the same job counts.
func TestDivergedBefore(t *testing.T) {
	dir := t.TempDir()
	add := func(run, name string, command string, category job.Category, at int) {
		t.Helper()
		e := history.Entry{Run: run, Name: name, Command: []string{command}, State: job.StateStoppedEarly, Ended: time.Unix(int64(at), 0), Failure: history.Failure{Category: category}}
		if err := history.In(dir).Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	add("r1", "a", "x", job.ModelDiverged, 1)
	add("r2", "b", "x", "", 2)
	add("r3", "c", "z", job.ModelDiverged, 3)
	add("r4", "c", "z", "", 4)
	add("r5", "", "y", job.ModelDiverged, 5)
	for _, c := range []struct {
		name, command string
		want          bool
	}{{"a", "x", true}, {"b", "x", false}, {"c", "z", false}, {"", "y", true}, {"", "w", false}} {
		s := &session{home: dir, spec: job.Spec{Name: c.name, Command: []string{c.command}}}
		s.run = home.Run{ID: "now"}
		if got := s.divergedBefore(t.Context()); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}
