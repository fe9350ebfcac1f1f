package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// numpyFile is a .npy file of numbers.
func numpyFile(numbers []float64) []byte {
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }", len(numbers))
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	data = append(data, header...)
	for _, n := range numbers {
		data = le.AppendUint64(data, math.Float64bits(n))
	}
	return data
}

// TestScan checks what Scan finds without verifying anything.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	if found, err := Scan(filepath.Join(dir, "missing")); err != nil || len(found) > 0 {
		t.Errorf("without a directory: %+v (%v)", found, err)
	}
	zip := realFile(t, "zip.pt")
	for name, data := range map[string][]byte{
		"ckpt-10.pt": zip, "ckpt-20.pt": zip[:len(zip)/2], "ckpt-30.pt.tmp": zip[:1], "train.log": []byte("x"),
		"step_5/a.pt": zip, "step_5/b.pt": zip,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Scan(dir)
	if err != nil || len(found) != 4 {
		t.Fatalf("%+v (%v)", found, err)
	}
	for i, want := range []struct {
		name, kind string
		step       int64
		bytes      int
		files      int
		unfinished bool
	}{
		{"ckpt-20.pt", "ckpt-#.pt", 20, len(zip) / 2, 1, false},
		{"ckpt-10.pt", "ckpt-#.pt", 10, len(zip), 1, false},
		{"step_5", "step_#", 5, 2 * len(zip), 2, false},
		{"ckpt-30.pt.tmp", "ckpt-#.pt.tmp", 30, 1, 1, true},
	} {
		f := found[i]
		if filepath.Base(f.Path) != want.name || f.Kind != filepath.Join(dir, want.kind) || f.Step != want.step || f.Bytes != int64(want.bytes) || f.Files != want.files ||
			f.Unfinished != want.unfinished || time.Since(f.Time) > time.Hour || !f.Born.IsZero() && time.Since(f.Born) > time.Hour {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	for name, want := range map[string]Verdict{"ckpt-10.pt": Good, "ckpt-20.pt": Broken, "step_5": Good} {
		if l, small, err := Examine(t.Context(), dir, filepath.Join(dir, name)); err != nil || l.Verdict != want || small || l.Bytes == 0 || (l.Why == "") != (want == Good) {
			t.Errorf("%s: %+v (%v), want %s", name, l, err, want)
		}
	}
	if _, _, err := Examine(t.Context(), dir, filepath.Join(dir, "ckpt-9.pt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a checkpoint that is gone: %v", err)
	}
}

// TestNewestFinite checks that a run that has diverged does not resume from a checkpoint with NaN. Other runs
// do not look at the numbers.
func TestNewestFinite(t *testing.T) {
	dir := t.TempDir()
	finite, broken := numpyFile([]float64{1, 2, 3, math.Inf(-1)}), numpyFile([]float64{1, math.NaN(), 3, 4})
	for name, data := range map[string][]byte{"ckpt-1.npy": finite, "ckpt-2.npy": broken, "ckpt-3.npy": broken} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if best, _, err := NewestBut(t.Context(), dir, nil, nil); err != nil || best.Step != 3 {
		t.Errorf("%+v (%v), want step 3", best, err)
	}
	best, skipped, err := NewestFinite(t.Context(), dir, nil, nil)
	if err != nil || best.Step != 1 || len(skipped) != 2 {
		t.Errorf("%+v, skipped %v (%v), want step 1", best, skipped, err)
	}
	if err := os.Remove(filepath.Join(dir, "ckpt-1.npy")); err != nil {
		t.Fatal(err)
	}
	if best, _, err := NewestFinite(t.Context(), dir, nil, nil); err != nil || best.Path != "" {
		t.Errorf("%+v (%v), want none", best, err)
	}
}
