package checkpoint

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rewriteZip writes an archive again with one entry changed, or left out if how is nil.
func rewriteZip(path, entry string, how func([]byte) []byte) error {
	r, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range r.File {
		in, err := e.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if e.Name == entry {
			if how == nil {
				continue
			}
			content = how(content)
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: e.Name, Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// TestDeep looks for NaN and Inf in files of torch, numpy, safetensors and ONNX.
func TestDeep(t *testing.T) {
	t.Parallel()
	made := formatsMade(t)
	list, err := List(t.Context(), filepath.Join(made, "deep"), true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		verdict Verdict
		why     string
	}{
		"nan-1.pt":          {NotFinite, "model.layer.weight has 1 NaN and 0 Inf, of 605 numbers in all"},
		"inf-1.pt":          {NotFinite, "model.layer.weight has 0 NaN and 1 Inf, of 605 numbers in all"},
		"mask-1.pt":         {Good, "model.layer.weight has -Inf, as masks have (1 of 605 numbers)"},
		"legacy-1.pt":       {NotFinite, "model.layer.weight has 1 NaN and 0 Inf, of 605 numbers in all"},
		"half-1.pt":         {NotFinite, "h has 1 NaN and 0 Inf, of 4 numbers in all"},
		"arrays-1.npz":      {NotFinite, "b.npy has 1 NaN and 0 Inf, of 7 numbers in all"},
		"packed-1.npz":      {NotFinite, "b.npy has 1 NaN and 0 Inf, of 7 numbers in all"},
		"array-1.npy":       {NotFinite, "array 0 has 0 NaN and 1 Inf, of 2 numbers in all"},
		"nan-1.safetensors": {NotFinite, "b has 1 NaN and 0 Inf, of 5 numbers in all"},
		"nan-1.onnx":        {NotFinite, "2.bias has 1 NaN and 0 Inf, of 830 numbers in all"},
		"good-1.pt":         {Good, "all 605 numbers are finite"},
		"good-2.pt":         {Good, "all 605 numbers are finite"},
	}
	for _, l := range list {
		name := filepath.Base(l.Path)
		if w, ok := want[name]; !ok || l.Verdict != w.verdict || !strings.HasPrefix(l.Why, w.why) {
			t.Errorf("%s is %s: %s, want %s: %s", name, l.Verdict, l.Why, w.verdict, w.why)
		}
		if l.Newest != (name == "good-2.pt") {
			t.Errorf("%s: newest is %t", name, l.Newest)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is not listed", name)
	}
	for first, want := range map[byte]string{1: "good all 20 numbers are finite", 0xff: "not-finite layer0/weights has 20 NaN and 0 Inf, of 20 numbers in all"} {
		dir := t.TempDir()
		for suffix, content := range tensorFlowOf(first, 1, false) {
			write(t, dir, map[string][]byte{"ckpt-1" + suffix: content})
		}
		if l := listDeep(t, dir)[0]; string(l.Verdict)+" "+l.Why != want {
			t.Errorf("it is %s: %s, want %s", l.Verdict, l.Why, want)
		}
	}
	for _, dir := range []string{"zero1", "torchdist", "dcp", "trainer"} {
		for _, l := range listDeep(t, filepath.Join(made, dir)) {
			if !strings.HasPrefix(l.Why, "all ") || !strings.HasSuffix(l.Why, "numbers are finite") {
				t.Errorf("%s is %s: %s", l.Path, l.Verdict, l.Why)
			}
		}
	}
}

func listDeep(t *testing.T, dir string) []Listed {
	t.Helper()
	list, err := List(t.Context(), dir, true)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}
