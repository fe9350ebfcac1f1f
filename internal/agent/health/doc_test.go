package health

import (
	"os"
	"strings"
	"testing"
)

// TestDocument checks that docs/watch.md has every sign with every severity that it may have.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			rows[strings.Trim(cells[1], " `")] += line
		}
	}
	for i := range kernelRules {
		r := &kernelRules[i]
		row := rows[string(r.sign)]
		if !strings.Contains(row, string(r.severity)) && !(r.severity == "warning" && strings.Contains(row, "note to error")) {
			t.Errorf("docs/watch.md does not say that %q may be %s: %s", r.sign, r.severity, row)
		}
	}
	for _, sign := range []string{"memory", "disk-full", "shm-full", "fs-frozen"} {
		if rows[sign] == "" {
			t.Errorf("docs/watch.md has no row for %s", sign)
		}
	}
}
