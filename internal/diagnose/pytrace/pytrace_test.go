package pytrace

import (
	"slices"
	"strings"
	"testing"
)

// TestShiftedHeader checks tracebacks whose first line is indented one blank further than the others. The exception
// must be found once, with all of its lines.
func TestShiftedHeader(t *testing.T) {
	const frame = "  File \"/lib/python3/dist-packages/loader.py\", line 7, in get\n    data = self.queue.get(timeout=timeout)\n"
	for name, text := range map[string]string{
		"a line above": "ERROR: bus error in worker\n Traceback (most recent call last):\n" + frame + frame + "RuntimeError: worker (pid 8) died",
		"first line":   " Traceback (most recent call last):\n" + frame + "RuntimeError: worker (pid 8) died",
		"a chain": "Traceback (most recent call last):\n" + frame + "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n" +
			" Traceback (most recent call last):\n" + frame + "RuntimeError: worker (pid 8) died",
	} {
		lines := strings.Split(text, "\n")
		all := Tracebacks(lines)
		i := slices.IndexFunc(all, func(e Exception) bool { return e.Class == "RuntimeError" })
		if i < 0 || i != len(all)-1 || len(all[i].Frames) == 0 || all[i].At != len(lines)-1 || all[i].To != len(lines) {
			t.Errorf("%s: %+v", name, all)
			continue
		}
		for i, e := range all {
			if e.From > e.At || e.At >= e.To || i > 0 && e.From < all[i-1].To {
				t.Errorf("%s: exception %d has lines %d to %d to %d, the one before it ends at %d", name, i, e.From, e.At, e.To, all[max(0, i-1)].To)
			}
		}
	}
}
