package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/layout"
)

// TestWrongChecksums changes all checksums of a torch.save archive, as
// torch.serialization.set_crc32_options(False) does. The archive must be good, with a remark. If one checksum
// is right, or if the pickle is damaged, the archive must be broken.
func TestWrongChecksums(t *testing.T) {
	content := realFile(t, "zip.pt")
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(but string) []byte {
		out := slices.Clone(content)
		for _, e := range r.File {
			if e.Name != but && e.CRC32 != 0 {
				out = bytes.ReplaceAll(out, le.AppendUint32(nil, e.CRC32), le.AppendUint32(nil, e.CRC32^0x5a5a5a5a))
			}
		}
		return out
	}
	damaged := spoil("")
	at := bytes.Index(damaged, []byte("\x80\x02}"))
	damaged[at+2] = 0xff
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"all-3.pt": spoil(""), "but-2.pt": spoil("zip/version"), "pickle-1.pt": damaged})
	want := map[string]string{
		"all-3.pt":    "good its checksums were not computed",
		"but-2.pt":    "broken truncated: entry zip/data.pkl fails its CRC",
		"pickle-1.pt": "broken truncated: entry zip/data.pkl fails its CRC",
	}
	for _, l := range listOf(t, dir) {
		if got := string(l.Verdict) + " " + l.Why; !strings.HasPrefix(got, want[filepath.Base(l.Path)]) {
			t.Errorf("%s is %s", l.Path, got)
		}
	}
}

// laid makes a directory with every kind of checkpoint that prune must tell apart.
func laid(t *testing.T) string {
	t.Helper()
	good := realFile(t, "zip.pt")
	dir := filepath.Join(t.TempDir(), "ck")
	var entries []entry
	for step := 100; step <= 900; step += 100 {
		entries = append(entries, entry{name: fmt.Sprintf("ckpt-%d.pt", step), content: good, age: 1000 - step})
	}
	entries = append(entries, entry{name: "ckpt-950.pt", content: good[:99]}, entry{name: "ckpt-960.pt.tmp", content: good},
		entry{name: "best-150.pt", content: good}, entry{name: "latest", content: []byte("ckpt-300.pt\n")},
		entry{name: "link.pt", target: "ckpt-400.pt"}, entry{name: "notes.txt", content: []byte("x")},
		entry{name: "step_55/model.pt", content: good, age: 2000}, entry{name: "step_50/model.pt", content: good, age: 2000}, entry{name: "../elsewhere-70.pt", content: good, age: 2000},
		entry{name: "far.pt", target: "../elsewhere-70.pt"})
	for suffix, content := range tensorFlow(2, false) {
		entries = append(entries, entry{name: "tf.ckpt-60" + suffix, content: content, age: 2000}, entry{name: "tf.ckpt-65" + suffix, content: content, age: 2000})
	}
	entries = append(entries, entry{name: "tf.ckpt-60.meta", content: []byte("graph"), age: 1990}) // TensorFlow 1 writes it last
	lay(t, dir, entries)
	return dir
}

func TestPrune(t *testing.T) {
	for rules, want := range map[string][]string{
		"keep=20":          nil,
		"keep=3":           {"ckpt-600.pt", "ckpt-500.pt", "ckpt-200.pt", "ckpt-100.pt", "tf.ckpt-60", "step_50"},
		"every=200":        {"ckpt-700.pt", "ckpt-500.pt", "ckpt-100.pt", "tf.ckpt-60", "step_50"},
		"keep=2,every=250": {"ckpt-700.pt", "ckpt-600.pt", "ckpt-200.pt", "ckpt-100.pt", "tf.ckpt-60", "step_50"},
	} {
		dir := laid(t)
		before := names0(t, dir)
		keep, err := ParseKeep(rules)
		if err != nil {
			t.Fatal(err)
		}
		list := listOf(t, dir)
		gone := map[string]bool{}
		var got []string
		for _, l := range keep.Superfluous(list) {
			got = append(got, filepath.Base(l.Path))
			for _, name := range l.Own {
				gone[name] = true
			}
			if err := Remove(dir, l); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s removes %q, want %q", rules, got, want)
		}
		for _, name := range before {
			_, err := os.Lstat(filepath.Join(dir, name))
			if (err != nil) != gone[name] {
				t.Errorf("%s: %s: %v", rules, name, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "../elsewhere-70.pt")); err != nil {
			t.Error(err)
		}
	}
}

func names0(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestNewestGoodStays removes everything that the rules allow to remove. Only some of the checkpoints are good.
// The newest good checkpoint, and the checkpoints that are not good, must remain.
func TestNewestGoodStays(t *testing.T) {
	good := realFile(t, "zip.pt")
	for mask := range 16 {
		dir := t.TempDir()
		var newest string
		for i := range 4 {
			content := good[:50]
			name := fmt.Sprintf("ckpt-%d.pt", i)
			if mask>>i&1 == 1 {
				content, newest = good, name
			}
			write(t, dir, map[string][]byte{name: content})
		}
		for _, l := range (Keep{}).Superfluous(listOf(t, dir)) {
			if l.Verdict != Good || filepath.Base(l.Path) == newest {
				t.Errorf("of %04b, %s (%s) is removed", mask, l.Path, l.Verdict)
			}
		}
	}
}

// TestOfOneStep checks that the files of one step are kept or removed together.
func TestOfOneStep(t *testing.T) {
	good := realFile(t, "zip.pt")
	dir := t.TempDir()
	for _, step := range []string{"10", "20", "30"} {
		write(t, dir, map[string][]byte{"model_" + step + ".pt": good, "optimizer_" + step + ".pt": good})
	}
	var got []string
	for _, l := range (Keep{Newest: 2}).Superfluous(listOf(t, dir)) {
		got = append(got, filepath.Base(l.Path))
	}
	slices.Sort(got)
	if want := []string{"model_10.pt", "optimizer_10.pt"}; !slices.Equal(got, want) {
		t.Errorf("%q are removed, want %q", got, want)
	}
}

// TestNamedFromElsewhere checks that a directory stays if a link or a file beside it leads into it, and that files stay
// that the job has written only once.
func TestNamedFromElsewhere(t *testing.T) {
	good := realFile(t, "zip.pt")
	dir := filepath.Join(t.TempDir(), "real")
	for _, step := range []string{"100", "200", "300", "400", "500"} {
		write(t, dir, map[string][]byte{"step_" + step + "/model.pt": good})
	}
	write(t, dir, map[string][]byte{"latest": []byte("step_300/model.pt"), "vocab.pt": good, "norm_v2.pt": good})
	for name, target := range map[string]string{"best.pt": "step_100/model.pt", "link.pt": "best.pt"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(filepath.Dir(dir), "other")
	if err := os.Symlink("real", other); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, other} {
		var got []string
		for _, l := range (Keep{}).Superfluous(listOf(t, dir)) {
			got = append(got, filepath.Base(l.Path))
		}
		slices.Sort(got)
		if want := []string{"step_200", "step_400"}; !slices.Equal(got, want) {
			t.Errorf("%q are removed, want %q", got, want)
		}
	}
}

// TestNeverItself checks that a directory that is a checkpoint itself is never removed.
func TestNeverItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dcp")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(formatsMade(t), "dcp/step-20"))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{"step-30/model.pt": realFile(t, "zip.pt")})
	t.Chdir(dir)
	for _, name := range []string{".", dir, dir + "/", "../dcp"} {
		list := listOf(t, name)
		if len(list) != 2 || list[1].Verdict != Good || len(list[1].Own) > 0 || len((Keep{}).Superfluous(list)) > 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func TestRemoveChanged(t *testing.T) {
	dir := laid(t)
	keep := Keep{Newest: 1}
	for _, l := range keep.Superfluous(listOf(t, dir)) {
		if filepath.Base(l.Path) != "ckpt-500.pt" {
			continue
		}
		if err := os.WriteFile(l.Path, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Remove(dir, l); err == nil || !strings.Contains(err.Error(), "it has changed since it was verified") {
			t.Errorf("got %v", err)
		}
		l.Own = []string{"../elsewhere-70.pt"}
		if err := Remove(dir, l); err == nil {
			t.Error("what lies elsewhere was removed")
		}
		return
	}
	t.Error("ckpt-500.pt would stay")
}

func TestParseKeep(t *testing.T) {
	for _, bad := range []string{"", "keep", "keep=0", "keep=-1", "keep=3,keep=4", "last=3", "keep=3;every=4", "every=x"} {
		if k, err := ParseKeep(bad); err == nil {
			t.Errorf("%q is %+v", bad, k)
		}
	}
	if k, err := ParseKeep("keep=3, every=1000"); err != nil || k != (Keep{3, 1000}) {
		t.Errorf("got %+v (%v)", k, err)
	}
}

// TestList checks that List reports what is named, linked or unfinished.
func TestList(t *testing.T) {
	var got []string
	for _, l := range listOf(t, laid(t)) {
		text := fmt.Sprintf("%s %s %d", filepath.Base(l.Path), l.Verdict, l.Step)
		if l.Newest {
			text += " newest"
		}
		if l.NamedBy != "" {
			text += " " + l.NamedBy
		}
		got = append(got, text)
	}
	want := []string{"ckpt-950.pt broken 950", "ckpt-900.pt good 900 newest", "ckpt-800.pt good 800", "ckpt-700.pt good 700", "ckpt-600.pt good 600", "ckpt-500.pt good 500",
		"ckpt-400.pt good 400 link.pt", "ckpt-300.pt good 300 latest", "ckpt-200.pt good 200", "ckpt-100.pt good 100", "elsewhere-70.pt good 70 far.pt", "tf.ckpt-65 good 65", "tf.ckpt-60 good 60",
		"step_55 good 55", "step_50 good 50",
		"best-150.pt good 150", "ckpt-960.pt.tmp unfinished 960"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := List(t.Context(), filepath.Join(t.TempDir(), "none"), false); err == nil {
		t.Error("a directory that is not there is listed")
	}
}

// TestMarks checks that a checkpoint is broken if it lacks a mark that the checkpoint before it has.
func TestMarks(t *testing.T) {
	good := realFile(t, "zip.pt")
	expectNewest(t, []entry{{name: "20/model.pt", content: good, age: 9}, {name: "20/commit_success.txt", age: 9}, {name: "40/model.pt", content: good}},
		"20", 20, []string{"40: it lacks a file: 20 has commit_success.txt"})
}

// field is a field of a protobuf message with bytes.
func field(number int, content []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

// externalONNX returns a model with one tensor, of 2 x 3 numbers, whose bytes are in another file.
func externalONNX(file, offset, length string) []byte {
	pair := func(key, value string) []byte {
		return field(13, append(field(1, []byte(key)), field(2, []byte(value))...))
	}
	tensor := slices.Concat([]byte{1 << 3, 2, 1 << 3, 3, 2 << 3, 1}, field(8, []byte("w")), pair("location", file), pair("offset", offset), pair("length", length), []byte{14 << 3, 1})
	return slices.Concat([]byte{1 << 3, 8}, field(7, field(5, tensor)), field(8, []byte{2 << 3, 13}))
}

func TestExternalONNX(t *testing.T) {
	for name, test := range map[string]struct {
		model []byte
		want  string
	}{
		"whole":    {externalONNX("w.data", "8", "24"), ""},
		"beyond":   {externalONNX("w.data", "9", "24"), `tensor "w": truncated: its file w.data has 32 bytes, but should have at least 33`},
		"missing":  {externalONNX("v.data", "8", "24"), `tensor "w": its file v.data is missing`},
		"outside":  {externalONNX("../w.data", "8", "24"), `tensor "w": it names the file "../w.data", which is no place`},
		"short":    {externalONNX("w.data", "0", "20"), `tensor "w": it has 20 bytes, but its shape needs 24`},
		"negative": {externalONNX("w.data", "-1", "24"), `tensor "w": its offset is "-1"`},
	} {
		dir := t.TempDir()
		write(t, dir, map[string][]byte{"m-1.onnx": test.model, "w.data": make([]byte, 32)})
		_, err := Verify(t.Context(), filepath.Join(dir, "m-1.onnx"))
		incomplete, ok := err.(*IncompleteError)
		if test.want == "" && err != nil || test.want != "" && (!ok || !strings.HasPrefix(incomplete.Reason, test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func FuzzONNX(f *testing.F) {
	content, err := os.ReadFile(filepath.Join(formatsMade(f), "onnx/model-20.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	fuzz(f, "a.onnx", [][]byte{content, externalONNX("w", "0", "24"), content[:len(content)/2]}, func(t *testing.T, data []byte, _ string) {
		for _, end := range []int{0, 2, len(data) / 2} {
			if _, err := checkBytes("a.onnx", data[:end]); err == nil && end < 4 {
				t.Errorf("its first %d bytes are whole", end)
			}
		}
	})
}

// FuzzLayout checks that no names of files make a check of layouts panic, and that two searches have the same
// result.
func FuzzLayout(f *testing.F) {
	f.Add("mp_rank_00_model_states.pt\nzero_pp_rank_0_mp_rank_00_optim_states.pt\nlayer_01-model_00-model_states.pt", int64(1), int64(2))
	f.Add("zero/a/fp32.pt\nmp_rank_00_model_states.pt\nmp_rank_00_001/model_optim_rng.pt", int64(0), int64(0))
	f.Add("a/_METADATA\na/ocdbt.process_0/manifest.ocdbt\nmodel-00001-of-00002.safetensors\nconfig.json\nrng_state_1.pth\ntraining_args.bin", int64(0), int64(3))
	f.Fuzz(func(t *testing.T, text string, a, b int64) {
		names := strings.Split(text, "\n")
		for i, name := range names {
			if names[i] = filepath.Clean(name); !filepath.IsLocal(names[i]) || len(name) > 300 {
				names[i] = "x"
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		for _, set := range layout.Find(names) {
			checks := map[string]func() error{
				layout.DeepSpeed: func() error {
					return set.CheckDeepSpeed(layout.DeepSpeedSays{Partitions: a, ModelRanks: b, Known: true})
				},
				layout.Universal: set.CheckUniversal,
				layout.Megatron:  func() error { return set.CheckMegatron(layout.MegatronSays{Tensor: a, Pipeline: b}) },
				layout.Trainer:   func() error { return set.CheckTrainer("checkpoint-3", []byte(text)) },
				layout.Orbax:     func() error { return set.CheckOrbax([]byte(text)) },
			}
			for _, err := range []error{checks[set.Format](), set.CheckFiles()} {
				if err != nil && !flaw.Is(err) {
					t.Errorf("%v is no flaw", err)
				}
			}
		}
	})
}
