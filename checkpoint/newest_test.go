package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// entry is a file with content, or a link to a target, in a directory of checkpoints. age is in seconds.
type entry struct {
	name    string
	content []byte
	target  string
	age     int
}

func lay(t testing.TB, dir string, entries []entry) {
	t.Helper()
	for _, e := range entries {
		path := filepath.Join(dir, e.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if e.target != "" {
			if err := os.Symlink(e.target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		at := noon.Add(-time.Duration(e.age) * time.Second)
		if err := errors.Join(os.WriteFile(path, e.content, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewest(t *testing.T) {
	good := realFile(t, "zip.pt")
	torn := good[:len(good)-10]
	text := []byte("some text\n")
	pickle := realFile(t, "protocol4.pkl")
	safe := safetensorsFile(twoTensors, 32)
	index := []byte(`{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`)
	at := func(name string, content []byte, age int) entry { return entry{name: name, content: content, age: age} }
	link := func(name, target string) entry { return entry{name: name, target: target} }
	for name, test := range map[string]struct {
		entries []entry
		best    string
		step    int64
		skipped []string // the beginning of "name: reason" for each
	}{
		"nothing":              {nil, "", 0, nil},
		"by step, not by time": {[]entry{at("ckpt-5.pt", good, 0), at("ckpt-40.pt", good, 9), at("ckpt-20.pt", good, 5)}, "ckpt-40.pt", 40, nil},
		"falls back": {[]entry{at("ckpt-20.pt", good, 0), at("ckpt-40.pt", torn, 0), at("ckpt-60.pt", nil, 0)}, "ckpt-20.pt", 20,
			[]string{"ckpt-60.pt: it is empty", "ckpt-40.pt: truncated: it has no end-of-central-directory record"}},
		"none is good":            {[]entry{at("ckpt-40.pt", torn, 0)}, "", 0, []string{"ckpt-40.pt: truncated"}},
		"same step, by time":      {[]entry{at("a-20.pt", good, 1), at("b-20.pt", good, 0), at("c-20.pt", good, 2)}, "b-20.pt", 20, nil},
		"no step, by time":        {[]entry{at("a.pt", good, 1), at("b.pt", good, 0), at("c.pt", good, 2)}, "b.pt", -1, nil},
		"last is newer":           {[]entry{at("ckpt-40.pt", good, 5), at("last.pt", good, 0)}, "last.pt", -1, nil},
		"last is older":           {[]entry{at("ckpt-40.pt", good, 5), at("last.pt", good, 9)}, "ckpt-40.pt", 40, nil},
		"last is torn":            {[]entry{at("ckpt-40.pt", good, 5), at("last.pt", torn, 0)}, "ckpt-40.pt", 40, []string{"last.pt: truncated"}},
		"best is not newest":      {[]entry{at("ckpt-40.pt", good, 5), at("best.pt", good, 0), at("best-step-90.pt", good, 0)}, "ckpt-40.pt", 40, nil},
		"only the best":           {[]entry{at("best.pt", good, 0), at("ckpt-1.pt", torn, 0)}, "best.pt", -1, []string{"ckpt-1.pt: truncated"}},
		"temporary":               {[]entry{at("ckpt-20.pt", good, 0), at("ckpt-40.pt.tmp", good, 0), at(".ckpt-60.pt", good, 0), at("tmp-80.pt", good, 0)}, "ckpt-20.pt", 20, nil},
		"link beside":             {[]entry{at("ckpt-20.pt", good, 0), at("ckpt-40.pt", good, 0), link("latest.pt", "ckpt-20.pt")}, "ckpt-40.pt", 40, nil},
		"link to nothing":         {[]entry{at("ckpt-20.pt", good, 0), link("latest", "ckpt-40.pt")}, "ckpt-20.pt", 20, []string{"latest: it is a link to nothing"}},
		"link in a circle":        {[]entry{link("latest", "latest")}, "", 0, []string{"latest: it is a link to nothing"}},
		"link elsewhere":          {[]entry{at("../else/ckpt-60.pt", good, 0), at("ckpt-20.pt", good, 0), link("latest", "../else/ckpt-60.pt")}, "../else/ckpt-60.pt", 60, nil},
		"among logs":              {[]entry{at("ckpt-20.pt", good, 9), at("train-99.txt", text, 0), at("train.log", text, 0), at("state-77.dat", text, 0), at("latest", text, 0)}, "ckpt-20.pt", 20, nil},
		"torn among logs":         {[]entry{at("ckpt-20.pt", torn, 9), at("train-99.txt", text, 0), at("state-77.dat", text, 0)}, "", 0, []string{"ckpt-20.pt: truncated"}},
		"plain with a step":       {[]entry{at("state-20.bin", text, 9), at("state-10.bin", text, 0), at("notes", text, 0), at("log-30.txt", text, 0)}, "state-20.bin", 20, nil},
		"plain, cut to nothing":   {[]entry{at("state-20.bin", nil, 9), at("log.txt", text, 0)}, "", 0, []string{"state-20.bin: it is empty"}},
		"plain without a step":    {[]entry{at("state", text, 9), at("progress.json", text, 0)}, "state", -1, nil},
		"text":                    {[]entry{at("progress.json", []byte("{}"), 9), at("train.log", text, 0)}, "progress.json", -1, nil},
		"other formats":           {[]entry{at("s-1.pkl", pickle, 0), at("s-2.npz", realFile(t, "arrays.npz"), 0), at("s-3.safetensors", safe, 0), at("s-4.h5", hdf5File(0, 0, 99, 0, 98), 0)}, "s-3.safetensors", 3, []string{"s-4.h5: truncated"}},
		"directories":             {[]entry{at("step_20/model.pt", good, 9), at("step_40/model.pt", good, 9), at("logs/train.log", text, 0), at("empty/.keep", nil, 0)}, "step_40", 40, nil},
		"directory with torn":     {[]entry{at("step_20/model.pt", good, 9), at("step_40/model.pt", good, 9), at("step_40/optimizer.pt", torn, 9)}, "step_20", 20, []string{"step_40: optimizer.pt: truncated"}},
		"directory with empty":    {[]entry{at("step_20/model.pt", good, 9), at("step_40/model.pt", good, 9), at("step_40/data", nil, 9)}, "step_20", 20, []string{"step_40: data: it is empty"}},
		"directory in writing":    {[]entry{at("step_20/model.pt", good, 9), at("step_40/model.pt", good, 9), at("step_40/sub/x.tmp", nil, 9)}, "step_20", 20, []string{"step_40: it holds sub/x.tmp, which was not finished"}},
		"directory with a mark":   {[]entry{at("step_40/model.pt", good, 9), at("step_40/_SUCCESS", nil, 9), at("step_40/.hidden", nil, 0), at("step_40/config.json", []byte(`{"a":1}`), 9)}, "step_40", 40, nil},
		"directory with bad link": {[]entry{at("step_40/model.pt", good, 9), link("step_40/other.pt", "nothing")}, "", 0, []string{"step_40: other.pt is gone, or a link to nothing"}},
		"directory lacks a kind":  {[]entry{at("step_20/model_20.pt", good, 9), at("step_20/optimizer_20.pt", good, 9), at("step_40/model_40.pt", good, 9)}, "step_20", 20, []string{"step_40: it lacks a file: step_20 has optimizer_20.pt"}},
		"directory lacks a rank":  {[]entry{at("step_20/rank0.pt", good, 9), at("step_20/rank1.pt", good, 9), at("step_40/rank0.pt", good, 9), at("step_20/train.log", text, 0)}, "step_20", 20, []string{"step_40: it lacks a file: step_20 has rank1.pt"}},
		"directory has more":      {[]entry{at("step_20/rank0.pt", good, 9), at("step_40/rank0.pt", good, 9), at("step_40/rank1.pt", good, 9)}, "step_40", 40, nil},
		"other directories":       {[]entry{at("final_1/a.pt", good, 9), at("final_1/b.pt", good, 9), at("step_40/rank0.pt", good, 9)}, "step_40", 40, nil},
		"DeepSpeed": {[]entry{at("global_step20/mp_rank_00_model_states.pt", good, 9), at("global_step20/zero_pp_rank_0_mp_rank_00_optim_states.pt", good, 9),
			at("latest", []byte("global_step20"), 0), at("zero_to_fp32.py", text, 0)}, "global_step20", 20, nil},
		"Hugging Face": {[]entry{at("checkpoint-500/model-00001-of-00002.safetensors", safe, 9), at("checkpoint-500/model-00002-of-00002.safetensors", safe, 9),
			at("checkpoint-500/model.safetensors.index.json", index, 9), at("checkpoint-500/trainer_state.json", []byte(`{"x": NaN}`), 9), at("checkpoint-500/optimizer.pt", good, 9),
			at("checkpoint-500/scheduler.pt", good, 9), at("checkpoint-500/rng_state.pth", good, 9), at("runs/a/events.out.tfevents.1", text, 0)}, "checkpoint-500", 500, nil},
		"Hugging Face, only weights": {[]entry{at("checkpoint-500/model.safetensors", safe, 9), at("checkpoint-500/config.json", []byte("{}"), 9), at("checkpoint-500/training_args.bin", good, 9)}, "checkpoint-500", 500,
			[]string{"took checkpoint-500: it has only weights"}},
		"Hugging Face, no shard": {[]entry{at("checkpoint-500/model-00001-of-00002.safetensors", safe, 9), at("checkpoint-500/model.safetensors.index.json", index, 9), at("checkpoint-400/model.safetensors", safe, 0)},
			"checkpoint-400", 400, []string{"checkpoint-500: model.safetensors.index.json: its shard model-00002-of-00002.safetensors is missing"}},
		"Hugging Face, torn": {[]entry{at("checkpoint-500/model-00001-of-00002.safetensors", safe, 9), at("checkpoint-500/model-00002-of-00002.safetensors", safe[:99], 9), at("checkpoint-500/model.safetensors.index.json", index, 9)},
			"", 0, []string{"checkpoint-500: model-00002-of-00002.safetensors: truncated"}},
		"itself": {[]entry{at("model-00001-of-00002.safetensors", safe, 9), at("model-00002-of-00002.safetensors", safe, 9), at("model.safetensors.index.json", index, 9), at("checkpoint-5/model.pt", torn, 0)},
			"", 0, []string{"checkpoint-5: model.pt: truncated", "checkpoints: checkpoint-5/model.pt: truncated"}},
		"itself, but for a part": {[]entry{at("model-00001-of-00002.safetensors", safe, 9), at("model-00002-of-00002.safetensors", safe, 9), at("model.safetensors.index.json", index, 0), at("checkpoint-5/model.pt", good, 9)}, "checkpoint-5", 5, nil},
		"itself alone":           {[]entry{at("model-00001-of-00002.safetensors", safe, 9), at("model-00002-of-00002.safetensors", safe, 9), at("model.safetensors.index.json", index, 0)}, ".", -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectNewest(t, test.entries, test.best, test.step, test.skipped)
		})
	}
}

// expectNewest writes entries to a directory. It checks which checkpoint is the newest there, the step of this
// checkpoint, and which are skipped. skipped has the beginnings of names and reasons.
func expectNewest(t *testing.T, entries []entry, best string, step int64, skipped []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, entries)
	found, passed, err := Newest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	if best != "" {
		want = filepath.Join(dir, best)
	}
	if found.Path != want || want != "" && found.Step != step {
		t.Errorf("the newest is %q of step %d, want %q of %d", found.Path, found.Step, want, step)
	}
	ok := len(passed) == len(skipped)
	for i := 0; ok && i < len(passed); i++ {
		ok = strings.HasPrefix(strings.TrimPrefix(passed[i].String(), "skipped "), skipped[i])
	}
	if !ok {
		t.Errorf("skipped %v, want %q", passed, skipped)
	}
}

func TestNewestOfNothing(t *testing.T) {
	dir := t.TempDir()
	if best, skipped, err := Newest(t.Context(), filepath.Join(dir, "none")); best.Path != "" || skipped != nil || err != nil {
		t.Errorf("a missing directory gives %v, %v (%v)", best, skipped, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Newest(t.Context(), file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file gives %v, want an error that names it", err)
	}
}

// TestUnreadable checks that Newest returns an error if a checkpoint cannot be read, so that a job does not
// silently start from the beginning.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	deep := "step_40" + strings.Repeat("/d", maxDepth) + "/model.pt"
	lay(t, dir, []entry{{name: deep, content: realFile(t, "zip.pt")}})
	if best, skipped, err := Newest(t.Context(), dir); best.Path != "" || len(skipped) != 1 || err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("Newest gives %v, %v (%v)", best, skipped, err)
	}
	lay(t, dir, []entry{{name: "step_20/model.pt", content: realFile(t, "zip.pt")}})
	if best, skipped, err := Newest(t.Context(), dir); filepath.Base(best.Path) != "step_20" || len(skipped) != 1 || err != nil {
		t.Errorf("Newest gives %v, %v (%v)", best, skipped, err)
	}
}

func TestPipesAndDevices(t *testing.T) {
	if _, err := Verify(t.Context(), "/dev/zero"); err == nil || errors.As(err, new(*IncompleteError)) {
		t.Errorf("/dev/zero: %v", err)
	}
	if _, err := Verify(t.Context(), filepath.Join(t.TempDir(), "none.pt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestGrowing checks that a plain file and a directory are not complete while a job writes them.
func TestGrowing(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, []entry{{name: "state-1.bin", content: []byte("x")}, {name: "step_1/model.dat", content: []byte("x")}})
	for _, c := range []struct{ path, grows string }{{"state-1.bin", "state-1.bin"}, {"step_1", "step_1/model.dat"}} {
		synctest.Test(t, func(t *testing.T) { // between the two looks of gangrun, the writer writes
			file, err := os.OpenFile(filepath.Join(dir, c.grows), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					if _, err := file.WriteString("more"); err != nil {
						t.Error(err)
					}
					time.Sleep(settle / 3)
				}
			}()
			_, err = Verify(t.Context(), filepath.Join(dir, c.path))
			cancel()
			<-done
			if !errors.As(err, new(*IncompleteError)) || !strings.Contains(err.Error(), "still being written") {
				t.Errorf("%s: %v, want that it is being written", c.path, err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), filepath.Join(dir, c.path)); err != nil {
				t.Errorf("%s at rest: %v", c.path, err)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	lay(t, dir, []entry{{name: "a-1.pt", content: realFile(t, "zip.pt")}, {name: "b-2.bin", content: []byte("x")}})
	for _, name := range []string{"a-1.pt", "b-2.bin"} {
		if _, err := Verify(ctx, filepath.Join(dir, name)); !errors.Is(err, context.Canceled) {
			t.Errorf("Verify(%s): %v, want context.Canceled", name, err)
		}
	}
	if best, _, err := Newest(ctx, dir); !errors.Is(err, context.Canceled) || best.Path != "" {
		t.Errorf("Newest: %v (%v), want context.Canceled", best, err)
	}
}

// TestNewestIsComplete mixes complete and damaged checkpoints at random. Newest must find the newest complete
// checkpoint and name every newer one.
func TestNewestIsComplete(t *testing.T) {
	kinds := map[string][]byte{}
	for _, name := range []string{"zip.pt", "legacy.pt", "protocol2.pkl", "arrays.npz", "fortran.npy"} {
		kinds[filepath.Ext(name)+"/"+name] = realFile(t, name)
	}
	kinds[".safetensors/made"] = safetensorsFile(twoTensors, 32)
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "newest")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		want := ""
		var newer []string
		steps := rapid.SliceOfNDistinct(rapid.IntRange(1, 999), 0, 6, rapid.ID[int]).Draw(t, "steps")
		slices.Sort(steps)
		for _, step := range steps {
			kind := rapid.SampledFrom(names).Draw(t, "kind")
			ext, _, _ := strings.Cut(kind, "/")
			content := slices.Clone(kinds[kind])
			whole := rapid.Bool().Draw(t, "whole")
			if !whole {
				content = content[:rapid.IntRange(0, len(content)-1).Draw(t, "cut")]
			}
			path := filepath.Join(dir, fmt.Sprintf("ckpt-%06d%s", step, ext))
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if whole {
				want, newer = path, nil
			} else {
				newer = append([]string{path}, newer...)
			}
		}
		best, skipped, err := Newest(context.Background(), dir)
		var named []string
		for _, s := range skipped {
			named = append(named, s.Path)
		}
		if err != nil || best.Path != want || !slices.Equal(named, newer) {
			t.Fatalf("the newest is %q, skipping %q (%v); want %q, skipping %q", best.Path, skipped, err, want, newer)
		}
	})
}
