package checkpoint

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestIsShort(t *testing.T) {
	const mb = 1 << 20
	for name, test := range map[string]struct {
		size    int64
		earlier []int64
		want    bool
	}{
		"nothing to compare with":                         {1, nil, false},
		"less than half of the only one":                  {4*mb/2 - 1, []int64{4 * mb}, true},
		"half of the only one":                            {2 * mb, []int64{4 * mb}, false},
		"a little less than the only one":                 {4*mb - 1, []int64{4 * mb}, false},
		"a little less than two of a size":                {4*mb - 1, []int64{4 * mb, 4 * mb}, true},
		"as big as all before":                            {4 * mb, []int64{4 * mb, 4 * mb}, false},
		"bigger":                                          {5 * mb, []int64{4 * mb, 4 * mb}, false},
		"sizes that differ":                               {3 * mb, []int64{4 * mb, 4*mb + 1, 5 * mb}, false},
		"sizes that differ, less than half of the median": {2*mb - 1, []int64{4 * mb, mb, 90 * mb}, true},
		"one that was huge":                               {3 * mb, []int64{90 * mb, 4 * mb, 4*mb + 1}, false},
		"one that was cut off before":                     {3 * mb, []int64{1, 4 * mb, 4 * mb}, false},
		"small texts of a size":                           {99, []int64{100, 100}, false},
		"small, but much smaller":                         {49, []int64{100, 100}, true},
		"small from now on":                               {mb, []int64{mb, mb, mb, 9 * mb, 9 * mb, 9 * mb, 9 * mb, 9 * mb}, false},
	} {
		if got := isShort(test.size, test.earlier); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 12345: "12 kB", 4123456: "4.1 MB", 999600: "1.0 MB", 5 << 40: "5.5 TB", 9e15: "9000 TB"} {
		if got := SizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestSuspect checks that a file that is much smaller than older files of its kind is ranked after them, if its
// format does not mark its end.
func TestSuspect(t *testing.T) {
	at := func(name string, size, age int) entry {
		return entry{name: name, content: make([]byte, size), age: age}
	}
	of := func(name string, content []byte, age int) entry { return entry{name: name, content: content, age: age} }
	pickle := realFile(t, "protocol4.pkl")
	zip := realFile(t, "zip.pt")
	for name, test := range map[string]struct {
		entries []entry
		best    string
		step    int64
		skipped []string
	}{
		"cut off":           {[]entry{at("ckpt-20.bin", 4123456, 9), at("ckpt-40.bin", 12345, 0)}, "ckpt-20.bin", 20, []string{"ckpt-40.bin: suspect: 12 kB, ckpt-20.bin has 4.1 MB"}},
		"another kind":      {[]entry{at("full-20.bin", 4123456, 9), at("ckpt-40.bin", 12345, 0)}, "ckpt-40.bin", 40, nil},
		"earlier ones":      {[]entry{at("ckpt-20.bin", 12345, 9), at("ckpt-40.bin", 4123456, 0)}, "ckpt-40.bin", 40, nil},
		"a byte is missing": {[]entry{at("ckpt-20.bin", 9000, 9), at("ckpt-40.bin", 9000, 0), at("ckpt-60.bin", 8999, 0)}, "ckpt-40.bin", 40, []string{"ckpt-60.bin: suspect: 8999 bytes, ckpt-40.bin has 9000 bytes"}},
		"two are cut off":   {[]entry{at("ckpt-20.bin", 9000, 9), at("ckpt-40.bin", 9000, 0), at("ckpt-60.bin", 8000, 0), at("ckpt-80.bin", 1000, 0)}, "ckpt-40.bin", 40, []string{"ckpt-80.bin: suspect: 1.0 kB, ckpt-60.bin has 8.0 kB", "ckpt-60.bin: suspect: 8.0 kB, ckpt-40.bin has 9.0 kB"}},
		"the one before":    {[]entry{at("state.bin", 1000, 0), at("state.bin.bak", 9000, 9)}, "state.bin.bak", -1, []string{"state.bin: suspect: 1.0 kB, state.bin.bak has 9.0 kB"}},
		"pickles in a row":  {[]entry{of("s-1.pkl", bytes.Repeat(pickle, 3), 9), of("s-2.pkl", pickle, 0)}, "s-1.pkl", 1, []string{"s-2.pkl: suspect: "}},
		"whole by its format": {[]entry{of("s-1.pt", realFile(t, "legacy.pt"), 9), of("s-2.pt", zip, 8), at("s-3.pt", 0, 0)}, "s-2.pt", 2,
			[]string{"s-3.pt: it is empty"}},
		"nothing else is good": {[]entry{of("s-1.pkl", bytes.Repeat(pickle, 9)[:len(pickle)*9-1], 9), of("s-2.pkl", pickle, 0)}, "s-2.pkl", 2,
			[]string{"took s-2.pkl: suspect: ", "s-1.pkl: truncated"}},
		"in a directory": {[]entry{of("step_20/a.pt", zip, 9), at("step_20/b-20.bin", 9000, 9), of("step_40/a.pt", zip, 9), at("step_40/b-40.bin", 100, 0)}, "step_20", 20,
			[]string{"step_40: suspect: b-40.bin has 100 bytes, in step_20 it has 9.0 kB"}},
		"other ranks in a directory": {[]entry{at("step_20/r-0.bin", 9000, 9), at("step_20/r-1.bin", 100, 9), at("step_40/r-0.bin", 9000, 9), at("step_40/r-1.bin", 100, 0)}, "step_40", 40, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectNewest(t, test.entries, test.best, test.step, test.skipped)
		})
	}
}

// TestNot checks that avoided checkpoints are ignored until they change, and that their sizes are still
// compared with those of other checkpoints.
func TestNot(t *testing.T) {
	dir := t.TempDir()
	zip := realFile(t, "zip.pt")
	lay(t, dir, []entry{{name: "a-1.pt", content: zip, age: 9}, {name: "a-2.pt", content: zip, age: 8}, {name: "step_3/a.pt", content: zip, age: 7}})
	var not []job.Checkpoint
	next := func() string {
		t.Helper()
		found, skipped, err := NewestBut(t.Context(), dir, nil, not)
		if err != nil || len(skipped) > 0 {
			t.Fatal(skipped, err)
		}
		if found.Path == "" {
			return ""
		}
		not = append(not, found)
		return filepath.Base(found.Path)
	}
	for _, want := range []string{"step_3", "a-2.pt", "a-1.pt", ""} {
		if got := next(); got != want {
			t.Errorf("next is %q, want %q", got, want)
		}
	}
	lay(t, dir, []entry{{name: "a-2.pt", content: zip, age: 1}})
	if got := next(); got != "a-2.pt" {
		t.Errorf("a checkpoint that was written anew is not taken, but %q", got)
	}
	// This directory is itself one checkpoint.
	itself := filepath.Join(t.TempDir(), "c")
	index := []byte(`{"weight_map": {"a": "model-00001-of-00001.safetensors"}}`)
	lay(t, itself, []entry{{name: "model-00001-of-00001.safetensors", content: safetensorsFile(twoTensors, 32)}, {name: "model.safetensors.index.json", content: index}})
	dir, not = itself, nil
	if first, second := next(), next(); first != "c" || second != "" {
		t.Errorf("got %q, then %q", first, second)
	}
	small := t.TempDir()
	lay(t, small, []entry{{name: "d-1.bin", content: make([]byte, 4000), age: 9}, {name: "d-2.bin", content: make([]byte, 9000), age: 8}, {name: "d-3.bin", content: make([]byte, 90), age: 7}})
	big, skipped, err := NewestBut(t.Context(), small, nil, nil)
	if filepath.Base(big.Path) != "d-2.bin" || len(skipped) != 1 || err != nil {
		t.Fatal(big, skipped, err)
	}
	found, skipped, err := NewestBut(t.Context(), small, nil, []job.Checkpoint{big})
	if filepath.Base(found.Path) != "d-1.bin" || len(skipped) != 1 || err != nil {
		t.Errorf("took %s, %v, %v: a smaller one is suspect though the bigger one is not wanted", found.Path, skipped, err)
	}
}

// TestLegacyWithManyValues checks that a file in torch.save's older format is not called broken because its object has more
// values than gangrun keeps in memory.
func TestLegacyWithManyValues(t *testing.T) {
	seed := string(legacySeed())
	const object, values = "\x80\x02(X\x07", 16<<20 + 1
	at := strings.Index(seed, object)
	many := seed[:at+2] + strings.Repeat("N0", values) + seed[at+2:] // None, which is removed at once
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ckpt-2.pt": []byte(many), "ckpt-1.pt": []byte(many[:len(many)-40])})
	var got []string
	for _, l := range listOf(t, dir) {
		got = append(got, fmt.Sprint(filepath.Base(l.Path), " ", l.Verdict, " ", l.Why))
	}
	want := []string{"ckpt-2.pt suspect its object has so many values that its storages were not looked at", "ckpt-1.pt broken "}
	if len(got) != 2 || got[0] != want[0] || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got %q, want %q", got, want)
	}
}
