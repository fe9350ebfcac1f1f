package checkpoint

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// TestRawLikePickle checks that a raw file that begins like a pickle by chance is raw if the other files of its
// kind are raw, and that a damaged pickle among many good ones is not raw.
func TestRawLikePickle(t *testing.T) {
	raw := bytes.Repeat([]byte{0x11, 0xfe, 0x33}, 2000)
	chance := append([]byte{0x80, 0x04, 0xfe}, raw[3:]...)
	pickle := realFile(t, "protocol4.pkl")
	torn := pickle[:len(pickle)-5]
	many := func(step int, odd []byte) (all []entry) {
		for i := range 200 {
			content := raw
			if i == 17 {
				content = odd
			}
			all = append(all, entry{name: fmt.Sprintf("step_%d/p%d.bin", step, i), content: content})
		}
		return all
	}
	for name, c := range map[string]struct {
		entries []entry
		best    string
		step    int64
		skipped []string
	}{
		"in a directory, the newest": {append(many(20, raw), many(40, chance)...), "step_40", 40, nil},
		"in a directory, an old one": {append(many(20, chance), many(40, raw)...), "step_40", 40, nil},
		"one file each": {[]entry{{name: "step_20/state", content: raw}, {name: "step_40/state", content: raw}, {name: "step_60/state", content: chance}},
			"step_60", 60, nil},
		"beside each other": {[]entry{{name: "w_20.bin", content: raw}, {name: "w_40.bin", content: chance}, {name: "w_60.bin", content: raw}}, "w_60.bin", 60, nil},
		"pickles": {[]entry{{name: "w_20.bin", content: pickle}, {name: "w_40.bin", content: pickle}, {name: "w_60.bin", content: torn}}, "w_40.bin", 40,
			[]string{"w_60.bin: truncated"}},
		"pickles among raw ones": {[]entry{{name: "w_20.bin", content: raw}, {name: "w_30.bin", content: raw}, {name: "w_40.bin", content: pickle}}, "w_40.bin", 40, nil},
		"its name says pickle": {[]entry{{name: "w_20.pkl", content: pickle}, {name: "w_60.pkl", content: chance}}, "w_20.pkl", 20,
			[]string{"w_60.pkl: its pickle has the unknown opcode"}},
		"alone": {[]entry{{name: "w_60.bin", content: chance}}, "", 0, []string{"w_60.bin: its pickle has the unknown opcode"}},
	} {
		t.Run(name, func(t *testing.T) { expectNewest(t, c.entries, c.best, c.step, c.skipped) })
	}
}

// TestRawIsOpen checks that gangrun judges a raw file by its size even if it begins like a pickle.
func TestRawIsOpen(t *testing.T) {
	dir := t.TempDir()
	raw := bytes.Repeat([]byte{0x11, 0xfe, 0x33}, 2000)
	write(t, dir, map[string][]byte{"w_20.bin": raw, "w_40.bin": raw, "w_60.bin": append([]byte{0x80, 2, 0xfe}, raw[3:3000]...)})
	best, _, err := Newest(t.Context(), dir)
	if err != nil || filepath.Base(best.Path) != "w_40.bin" {
		t.Errorf("%+v (%v)", best, err)
	}
}
