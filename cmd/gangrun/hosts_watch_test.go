package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/home"
)

// TestWatchElsewhere checks that users on a host without the controller can see what the ranks do, and can get their
// stacks.
func TestWatchElsewhere(t *testing.T) {
	t.Parallel()
	r := startShared(t, `echo >ready.$RANK; i=0; until test -e end; do i=$((i+1)); echo "step $i/100000"; sleep 0.1; done`)
	r.made("ready.0", "ready.1")
	run := r.shared()
	r.comes("vitals of both ranks", func() bool {
		text, err := run.ReadVitals()
		return err == nil && strings.Count(string(text), `"cpu":`) == 3 // one for each rank, and one for the gang
	})
	elsewhere := r.bed.Host(2)
	code, out, errs := r.on(elsewhere, "status")
	if code != 0 || errs != "" || !strings.Contains(out, "\ngang     step") || !strings.Contains(out, " of 100000, ") {
		t.Errorf("gangrun status ended with %d: %s%s", code, out, errs)
	}
	if code, out, errs := r.on(elsewhere, "top"); code != 0 || errs != "" || !strings.Contains(out, "  2 ranks on 2 hosts\n") || !strings.Contains(out, " of 100000, ") {
		t.Errorf("gangrun top ended with %d: %s%s", code, out, errs)
	}
	code, out, errs = r.on(elsewhere, "status", "--stacks", "-o", "json")
	var stacks home.Stacks
	if err := json.Unmarshal([]byte(out), &stacks); code != 0 || err != nil || stacks.Run != run.ID || stacks.Attempt != 1 || len(stacks.Stacks) != 2 || len(stacks.Groups) == 0 || len(stacks.Missing) != 0 {
		t.Errorf("gangrun status --stacks ended with %d, %v: %s%s", code, err, out, errs)
	}
	if left, err := filepath.Glob(filepath.Join(run.Dir, "stacks-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	r.letGo()
	if code := r.finish(); code != 0 {
		t.Errorf("the run ended with %d", code)
	}
	if code, _, errs := r.on(elsewhere, "status", "--stacks"); code != 75 || !strings.Contains(errs, "has ended: it is succeeded") {
		t.Errorf("gangrun status --stacks of a run that has ended: %d, %s", code, errs)
	}
}
