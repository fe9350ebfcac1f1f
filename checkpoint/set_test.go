package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestShardsAreOne checks that the files that ranks have written at one step are one checkpoint, whatever their
// names are.
func TestShardsAreOne(t *testing.T) {
	good := realFile(t, "arrays.npz")
	for _, form := range []string{"ckpt-%d-rank%d.npz", "ckpt_%d_rank_%d.npz", "model.%d.shard-%d.npz", "%d-rank%d.npz", "ckpt-%d.rank%d", "checkpoint_%04d_%04d-of-0002.npz", "%d_part%d/w.npz"} {
		t.Run(form, func(t *testing.T) { shardsAreOne(t, form, good) })
	}
}

func shardsAreOne(t *testing.T, form string, good []byte) {
	t.Parallel()
	dir := t.TempDir()
	name := func(step, rank int) string { return fmt.Sprintf(form, step, rank) }
	top := func(step, rank int) string { first, _, _ := strings.Cut(name(step, rank), "/"); return first }
	for _, step := range []int{9, 30, 100} {
		write(t, dir, map[string][]byte{name(step, 0): good, name(step, 1): good})
	}
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, l := range listOf(t, dir) {
			newest := ""
			if l.Newest {
				newest = " newest"
			}
			got = append(got, fmt.Sprintf("%s %d %s of %d%s", filepath.Base(l.Path), l.Step, l.Verdict, len(l.Own), newest))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s, %s: got\n%s\nwant\n%s", form, what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	expect("all good", top(100, 0)+" 100 good of 2 newest", top(30, 0)+" 30 good of 2", top(9, 0)+" 9 good of 2")
	best, _, err := Newest(t.Context(), dir)
	if err != nil || filepath.Base(best.Path) != top(100, 0) || best.Step != 100 || best.Bytes != 2*int64(len(good)) {
		t.Errorf("%s: %+v (%v)", form, best, err)
	}
	write(t, dir, map[string][]byte{name(100, 1): good[:len(good)/2]})
	expect("one is torn", top(100, 0)+" 100 broken of 2", top(30, 0)+" 30 good of 2 newest", top(9, 0)+" 9 good of 2")
	if err := os.RemoveAll(filepath.Join(dir, top(100, 1))); err != nil {
		t.Fatal(err)
	}
	expect("one is missing", top(100, 0)+" 100 broken of 1", top(30, 0)+" 30 good of 2 newest", top(9, 0)+" 9 good of 2")
	list := listOf(t, dir)
	for _, l := range (Keep{Newest: 1}).Superfluous(list) {
		if err := Remove(dir, l); err != nil {
			t.Error(err)
		}
	}
	expect("pruned", top(100, 0)+" 100 broken of 1", top(30, 0)+" 30 good of 2 newest")
}

// TestOf checks that gangrun takes the number of shards from the name.
func TestOf(t *testing.T) {
	good := realFile(t, "arrays.npz")
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"c_60_0001-of-0002.npz": good})
	best, skipped, err := Newest(t.Context(), dir)
	if best.Path != "" || err != nil || len(skipped) != 1 || skipped[0].Reason != "it has 1 of its 2 files" {
		t.Errorf("%+v, %v (%v)", best, skipped, err)
	}
}

// TestFewerRanks checks that a job that goes on with fewer ranks loses at most one checkpoint, and that a job
// that goes on with more ranks loses none.
func TestFewerRanks(t *testing.T) {
	good := realFile(t, "arrays.npz")
	dir := t.TempDir()
	for step, ranks := range map[int]int{10: 4, 20: 4, 30: 2, 40: 2, 50: 3} {
		for rank := range ranks {
			write(t, dir, map[string][]byte{fmt.Sprintf("ckpt-%d-rank%d.npz", step, rank): good})
		}
	}
	var bad []int64
	for _, l := range listOf(t, dir) {
		if l.Verdict != Good {
			bad = append(bad, l.Step)
			if l.Why != "it has 2 files, and there are 4 as ckpt-20-rank0.npz" {
				t.Errorf("why %q", l.Why)
			}
		}
	}
	if !slices.Equal(bad, []int64{30}) {
		t.Errorf("the steps %v are not good, want only 30", bad)
	}
}

// TestRanksThatDisagree checks that files of different ranks at different steps are no checkpoints.
func TestRanksThatDisagree(t *testing.T) {
	good := realFile(t, "arrays.npz")
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"c-40-rank0.npz": good, "c-40-rank1.npz": good, "c-205-rank0.npz": good, "c-209-rank1.npz": good})
	best, skipped, err := Newest(t.Context(), dir)
	if err != nil || best.Step != 40 || len(skipped) != 2 || skipped[0].Reason != "it has nothing like c-205-rank0.npz" {
		t.Errorf("%+v, %v (%v)", best, skipped, err)
	}
}

// TestFilesOfOneStep checks that one of the two files of a step is not good if the other file is broken, or if
// it is missing and the steps before have it.
func TestFilesOfOneStep(t *testing.T) {
	good := realFile(t, "arrays.npz")
	for name, c := range map[string]struct {
		files []string // files with ! are truncated
		best  string
		why   string // why the others are skipped
	}{
		"whole":              {[]string{"model-20", "optim-20", "model-40", "optim-40"}, "40", ""},
		"torn":               {[]string{"model-20", "optim-20", "model-40", "!optim-40"}, "20", "suspect: optim-40.npz, of the same step, is broken: truncated"},
		"missing":            {[]string{"model-10", "optim-10", "model-20", "optim-20", "model-40"}, "20", "suspect: the step before has optim-20.npz, and this one has nothing like it"},
		"each second":        {[]string{"model-20", "model-40", "ema-40", "model-60"}, "60", ""},
		"old ones removed":   {[]string{"model-20", "model-40", "optim-40"}, "40", ""},
		"another kind":       {[]string{"pretrained-0", "extra-0", "model-40"}, "40", ""},
		"nothing else left":  {[]string{"model-40", "!optim-40"}, "40", ""},
		"best is torn":       {[]string{"model-20", "model-40", "!best-40"}, "40", ""},
		"a predecessor torn": {[]string{"model-20", "model-40", "!model-40_prev"}, "40", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				content := good
				if rest, torn := strings.CutPrefix(f, "!"); torn {
					f, content = rest, good[:99]
				}
				write(t, dir, map[string][]byte{f + ".npz": content})
			}
			best, skipped, err := Newest(t.Context(), dir)
			if err != nil || fmt.Sprint(best.Step) != c.best {
				t.Errorf("%+v, %v (%v), want step %s", best, skipped, err, c.best)
			}
			if c.why != "" && !slices.ContainsFunc(skipped, func(s Skipped) bool { return strings.HasPrefix(s.Reason, c.why) }) {
				t.Errorf("skipped %v, want %q", skipped, c.why)
			}
			for _, l := range (Keep{Newest: 1}).Superfluous(listOf(t, dir)) {
				if fmt.Sprint(l.Step) == c.best {
					t.Errorf("%s of the newest whole step is removed", l.Path)
				}
			}
		})
	}
}

// TestShardOfAvoided checks that no file of a set is used if the set is avoided, and that a set that was there
// before the run is not new.
func TestShardOfAvoided(t *testing.T) {
	good := realFile(t, "arrays.npz")
	dir := t.TempDir()
	for _, step := range []int{10, 20} {
		for rank := range 3 {
			write(t, dir, map[string][]byte{fmt.Sprintf("ckpt-%d-rank%d.npz", step, rank): good})
		}
	}
	first, _, err := Newest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := NewestBut(t.Context(), dir, nil, []job.Checkpoint{first})
	if err != nil || second.Step != 10 {
		t.Errorf("%+v (%v), want step 10", second, err)
	}
	if found, _, err := NewestBut(t.Context(), dir, seen, nil); err != nil || found.Path != "" {
		t.Errorf("%+v (%v), want nothing new", found, err)
	}
	changed := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(dir, "ckpt-10-rank2.npz"), changed, changed); err != nil {
		t.Fatal(err)
	}
	if found, _, err := NewestBut(t.Context(), dir, seen, nil); err != nil || found.Step != 10 {
		t.Errorf("%+v (%v), want step 10, which has changed", found, err)
	}
}
