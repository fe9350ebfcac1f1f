package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/checkpoint/archive"
)

// breaking is one way to break a checkpoint. If this way does not break the checkpoint, but only makes it
// doubtful, breaking has the verdict that is expected.
type breaking struct {
	do      func(dir string) error
	want    string // how the reason begins
	verdict Verdict
}

// change returns a function that changes a file of a checkpoint. name is the path of the file below the
// checkpoint's directory.
func change(name string, how func([]byte) []byte) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, how(content), 0o600)
	}
}
func remove(name string) func(string) error {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}
func half(name string) func(string) error {
	return change(name, func(b []byte) []byte { return b[:len(b)/2] })
}
func cut(name string, n int) func(string) error {
	return change(name, func(b []byte) []byte { return b[:len(b)-n] })
}
func head(name string, n int) func(string) error {
	return change(name, func(b []byte) []byte { return b[:n] })
}
func grow(name string) func(string) error {
	return change(name, func(b []byte) []byte { return append(b, make([]byte, 64)...) })
}
func zeros(name string) func(string) error {
	return change(name, func(b []byte) []byte { return make([]byte, len(b)) })
}
func empty(name string) func(string) error {
	return change(name, func([]byte) []byte { return nil })
}
func with(name, content string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
}
func subst(name, old, new string) func(string) error {
	return change(name, func(b []byte) []byte {
		if !bytes.Contains(b, []byte(old)) {
			return []byte("nothing to replace: the test is wrong")
		}
		return bytes.Replace(b, []byte(old), []byte(new), 1)
	})
}
func dangling(name string) func(string) error {
	return func(dir string) error {
		return errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Symlink("nowhere", filepath.Join(dir, name)))
	}
}
func copied2(from, to string) func(string) error {
	return func(dir string) error {
		content, err := os.ReadFile(filepath.Join(dir, from))
		return errors.Join(err, os.WriteFile(filepath.Join(dir, to), content, 0o600))
	}
}
func all(steps ...func(string) error) func(string) error {
	return func(dir string) error {
		for _, do := range steps {
			if err := do(dir); err != nil {
				return err
			}
		}
		return nil
	}
}
func younger(name string, by time.Duration) func(string) error {
	return func(dir string) error {
		at := time.Now().Add(by)
		return os.Chtimes(filepath.Join(dir, name), at, at)
	}
}

// flip changes a bit of the first storage of a torch archive.
func flip(name string) func(string) error {
	return change(name, func(b []byte) []byte {
		at := bytes.LastIndex(b[:bytes.Index(b, []byte("/data/0"))], []byte(archive.Local))
		b[at+archive.LocalLen+int(le.Uint16(b[at+26:]))+int(le.Uint16(b[at+28:]))] ^= 4
		return b
	})
}

// torchFile returns the ways to break a torch.save file of a checkpoint.
func torchFile(name string) map[string]breaking {
	return map[string]breaking{
		"half of " + name:           {half(name), name + ": truncated: it has no end-of-central-directory record", ""},
		name + " without last byte": {cut(name, 1), name + ": truncated", ""},
		name + " of zeros":          {zeros(name), name + ": it begins neither like a zip archive nor like a pickle", ""},
		name + " empty":             {empty(name), name + ": it is empty", ""},
		"bit of " + name:            {flip(name), name + ": truncated: entry", ""},
		name + " is text":           {with(name, "<html>502 Bad Gateway</html>"), name + ": it begins neither", ""},
		name + " dangling":          {all(dangling(name), with("x.txt", "x")), name + " is gone, or a link to nothing", ""},
		name + ".tmp":               {with(name+".tmp", "x"), "it holds " + name + ".tmp, which was not finished", ""},
	}
}

// family is a checkpoint and the ways to break it.
type family struct {
	path   string // below the directory of formats
	format string
	broken map[string]breaking
}

func merged(maps ...map[string]breaking) map[string]breaking {
	out := map[string]breaking{}
	for _, m := range maps {
		for name, b := range m {
			out[name] = b
		}
	}
	return out
}

var families = []family{
	{"zero1/global_step20", "deepspeed", merged(torchFile("mp_rank_00_model_states.pt"), torchFile("bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt"), map[string]breaking{
		"no model of rank 1":     {remove("mp_rank_01_model_states.pt"), "it has the model states of 1 model-parallel ranks, but 2 have trained", ""},
		"no model":               {all(remove("mp_rank_00_model_states.pt"), remove("mp_rank_01_model_states.pt")), "mp_rank_00_model_states.pt is missing: there are only", ""},
		"no optimizer 0":         {remove("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"), "zero_pp_rank_0_mp_rank_00_optim_states.pt is missing", ""},
		"no last optimizer":      {remove("bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt"), "zero_pp_rank_1_mp_rank_01_optim_states.pt is missing", ""},
		"no optimizer of rank 1": {all(remove("bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt"), remove("bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt")), "zero_pp_rank_0_mp_rank_01_optim_states.pt is missing", ""},
		"no optimizers":          {all(remove("bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt"), remove("bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt"), remove("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"), remove("bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt")), "zero_pp_rank_0_mp_rank_00_optim_states.pt is missing: the optimizer states are nowhere else", ""},
		"of an earlier gang":     {copied2("bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt", "bf16_zero_pp_rank_2_mp_rank_01_optim_states.pt"), "zero_pp_rank_2_mp_rank_01_optim_states.pt is one too many", ""},
	})},
	{"zero3/global_step20", "deepspeed", merged(torchFile("zero_pp_rank_2_mp_rank_00_model_states.pt"), map[string]breaking{
		"no last model":     {remove("zero_pp_rank_2_mp_rank_00_model_states.pt"), "zero_pp_rank_2_mp_rank_00_model_states.pt is missing", ""},
		"no first model":    {remove("zero_pp_rank_0_mp_rank_00_model_states.pt"), "zero_pp_rank_0_mp_rank_00_model_states.pt is missing", ""},
		"no last optimizer": {remove("zero_pp_rank_2_mp_rank_00_optim_states.pt"), "zero_pp_rank_2_mp_rank_00_optim_states.pt is missing", ""},
		"no last rank":      {all(remove("zero_pp_rank_2_mp_rank_00_optim_states.pt"), remove("zero_pp_rank_2_mp_rank_00_model_states.pt")), "zero_pp_rank_2_mp_rank_00_model_states.pt is missing", ""},
		"one optimizer":     {all(remove("zero_pp_rank_2_mp_rank_00_optim_states.pt"), remove("zero_pp_rank_1_mp_rank_00_optim_states.pt")), "zero_pp_rank_1_mp_rank_00_optim_states.pt is missing", ""},
	})},
	{"zero0/global_step20", "deepspeed", merged(torchFile("mp_rank_00_model_states.pt"), map[string]breaking{
		"not its archive":      {copied2("../latest", "mp_rank_00_model_states.pt"), "mp_rank_00_model_states.pt: it begins neither", ""},
		"no end record":        {cut("mp_rank_00_model_states.pt", archive.EndLen), "mp_rank_00_model_states.pt: truncated", ""},
		"too long":             {grow("mp_rank_00_model_states.pt"), "mp_rank_00_model_states.pt: truncated", ""},
		"optimizer of ZeRO":    {copied2("mp_rank_00_model_states.pt", "zero_pp_rank_1_mp_rank_00_optim_states.pt"), "zero_pp_rank_0_mp_rank_00_optim_states.pt is missing", ""},
		"layer of a stage":     {all(copied2("mp_rank_00_model_states.pt", "layer_01-model_01-model_states.pt"), copied2("mp_rank_00_model_states.pt", "layer_02-model_00-model_states.pt")), "layer_01-model_00-model_states.pt is missing", ""},
		"expert missing":       {copied2("mp_rank_00_model_states.pt", "layer_1_expert_1_mp_rank_00_model_states.pt"), "layer_1_expert_0_mp_rank_00_model_states.pt is missing", ""},
		"model of higher rank": {copied2("mp_rank_00_model_states.pt", "mp_rank_02_model_states.pt"), "it has the model states of 2 model-parallel ranks, but 1 have trained", ""},
	})},
	{"universal/global_step20", "deepspeed-universal", merged(torchFile("mp_rank_00_model_states.pt"), map[string]breaking{
		"no model":        {remove("mp_rank_00_model_states.pt"), "mp_rank_00_model_states.pt is missing: it is copied last", ""},
		"no state":        {remove("zero/layers.0.bias/exp_avg.pt"), "zero/layers.0.bias/exp_avg.pt is missing: zero/lm_head.weight has it", ""},
		"no weights":      {remove("zero/lm_head.weight/fp32.pt"), "zero/lm_head.weight/fp32.pt is missing", ""},
		"pieces are left": {all(func(dir string) error { return os.Mkdir(filepath.Join(dir, "tmp"), 0o700) }, copied2("mp_rank_00_model_states.pt", "tmp/00.pt")), "its pieces are still in tmp", ""},
		"state cut":       {half("zero/layers.0.bias/exp_avg.pt"), "zero/layers.0.bias/exp_avg.pt: truncated", ""},
		"state empty":     {empty("zero/layers.0.bias/fp32.pt"), "zero/layers.0.bias/fp32.pt: it is empty", ""},
	})},
	{"megatron/iter_0000020", "megatron", merged(torchFile("mp_rank_01_001/model_optim_rng.pt"), map[string]breaking{
		"no rank":              {remove("mp_rank_01_001"), "mp_rank_00_000 to mp_rank_01_000 are 3 of 4", ""},
		"no stage 0":           {all(remove("mp_rank_00_000"), remove("mp_rank_01_000")), "there is no rank 0", ""},
		"no stage 1":           {all(remove("mp_rank_00_001"), remove("mp_rank_01_001")), "it has 1 pipeline-parallel ranks, but 2 have trained", ""},
		"no tensor rank 1":     {all(remove("mp_rank_01_000"), remove("mp_rank_01_001")), "it has 1 tensor-parallel ranks, but 2 have trained", ""},
		"no optimizer":         {remove("mp_rank_01_000/distrib_optim.pt"), "mp_rank_01_000/distrib_optim.pt is missing", ""},
		"not in the tracker":   {with("../latest_checkpointed_iteration.txt", "10\n"), "latest_checkpointed_iteration.txt is at 10, which is written last: it was not finished", ""},
		"optimizer of zeros":   {zeros("mp_rank_00_000/distrib_optim.pt"), "mp_rank_00_000/distrib_optim.pt: it begins neither", ""},
		"optimizer is cut off": {half("mp_rank_00_000/distrib_optim.pt"), "mp_rank_00_000/distrib_optim.pt: truncated", ""},
	})},
	{"torchdist/iter_0000020", "megatron", merged(dcpBroken, map[string]breaking{
		"no metadata of all": {all(remove(".metadata"), remove("__0_0.distcp"), remove("__1_0.distcp")), "metadata.json: .metadata is missing", ""},
		"common cut":         {half("common.pt"), "common.pt: truncated", ""},
	})},
	{"dcp/step-20", "dcp", dcpBroken},
	{"trainer/checkpoint-20", "hf-trainer", merged(torchFile("optimizer.pt"), map[string]breaking{
		"no state":          {remove("trainer_state.json"), "trainer_state.json is missing: it is written last", ""},
		"no scheduler":      {remove("scheduler.pt"), "scheduler.pt is missing", ""},
		"no optimizer":      {remove("optimizer.pt"), "optimizer.pt is missing", ""},
		"no rng 0":          {remove("rng_state_0.pth"), "rng_state_0.pth is missing", ""},
		"no rng":            {all(remove("rng_state_0.pth"), remove("rng_state_1.pth")), "rng_state.pth is missing", ""},
		"no shard":          {remove("model-00002-of-00002.safetensors"), "model.safetensors.index.json: its shard model-00002-of-00002.safetensors is missing", ""},
		"no shard, unnamed": {all(remove("model-00002-of-00002.safetensors"), remove("model.safetensors.index.json")), "model-00002-of-00002.safetensors is missing", ""},
		"shard cut":         {cut("model-00001-of-00002.safetensors", 8), "model-00001-of-00002.safetensors: truncated", ""},
		"shard of another":  {subst("model-00002-of-00002.safetensors", `"bias"`, `"biaz"`), "model.safetensors.index.json: its tensor bias is not in model-00002-of-00002.safetensors", ""},
		"state cut":         {half("trainer_state.json"), "trainer_state.json: truncated", ""},
		"state of another":  {subst("trainer_state.json", `"global_step": 20`, `"global_step": 10`), "its trainer_state.json is of step 10", ""},
		"index cut":         {half("model.safetensors.index.json"), "model.safetensors.index.json: it cannot be read", ""},
		"only weights":      {all(remove("optimizer.pt"), remove("scheduler.pt"), remove("rng_state_0.pth"), remove("rng_state_1.pth")), "it has only weights", WeightsOnly},
	})},
	{"orbax0/20", "orbax", orbaxBroken},
	{"orbax1/20", "orbax", orbaxBroken},
	{"lightning/epoch=3-step=20.ckpt", "lightning", fileBroken("truncated: it has no end-of-central-directory record", "it begins neither like a zip archive nor like a pickle", map[string]breaking{
		"bit":             {flip("epoch=3-step=20.ckpt"), "truncated: entry", ""},
		"no end record":   {cut("epoch=3-step=20.ckpt", archive.EndLen), "truncated", ""},
		"pickle spoilt":   {subst("epoch=3-step=20.ckpt", "optimizer_states", "optimizer_stateS"), "truncated: entry", ""},
		"local header":    {subst("epoch=3-step=20.ckpt", archive.Local, "PK\x03\x05"), "it begins neither", ""},
		"renamed entry":   {subst("epoch=3-step=20.ckpt", "/data/1", "/data/7"), "truncated: entry", ""},
		"central damaged": {subst("epoch=3-step=20.ckpt", archive.Central, "PK\x01\x03"), "its central directory is damaged", ""},
	})},
	{"lightning-weights/epoch=3-step=20.ckpt", "lightning", map[string]breaking{"nothing": {all(), "it has only weights", WeightsOnly}}},
	{"keras/model-20.keras", "keras", fileBroken("truncated: it has no end-of-central-directory record", "truncated: it has no end", map[string]breaking{
		"no weights":        {rezip("model.weights.h5", nil), "its entry model.weights.h5 is missing", ""},
		"no configuration":  {rezip("config.json", nil), "it lacks metadata.json or config.json", ""},
		"no metadata":       {rezip("metadata.json", nil), "it lacks metadata.json or config.json", ""},
		"weights cut":       {rezip("model.weights.h5", func(b []byte) []byte { return b[:len(b)/2] }), "entry model.weights.h5: truncated", ""},
		"weights of zeros":  {rezip("model.weights.h5", func(b []byte) []byte { return make([]byte, len(b)) }), "entry model.weights.h5: it has no HDF5 superblock", ""},
		"weights not HDF5":  {rezip("model.weights.h5", func([]byte) []byte { return []byte("text") }), "entry model.weights.h5: it has no HDF5 superblock", ""},
		"bit of the header": {subst("model-20.keras", "keras_version", "keras_versioN"), "truncated: entry metadata.json fails its CRC", ""},
		"bit of weights":    {subst("model-20.keras", "TREE", "TREe"), "truncated: entry model.weights.h5 fails its CRC", ""},
	})},
	{"keras-weights/ckpt-20.weights.h5", "hdf5", h5Broken("ckpt-20.weights.h5")},
	{"hdf5/earliest-20.h5", "hdf5", h5Broken("earliest-20.h5")},
	{"hdf5/latest-20.h5", "hdf5", h5Broken("latest-20.h5")},
	{"onnx/model-20.onnx", "onnx", fileBroken("truncated", "it is damaged at byte", map[string]breaking{
		"no operators": {change("model-20.onnx", func(b []byte) []byte { return b[:bytes.LastIndexByte(b, 0x42)] }), "truncated: it has no version, no graph or no set of operators", ""},
		"a weight missing": {change("model-20.onnx", func(b []byte) []byte {
			at := bytes.LastIndex(b, []byte("weight"))
			return append(b[:at-100:at-100], b[at:]...)
		}), "", ""},
		"version gone": {change("model-20.onnx", func(b []byte) []byte { return b[2:] }), "truncated: it has no version", ""},
		"graph only":   {change("model-20.onnx", func(b []byte) []byte { return b[bytes.IndexByte(b, 0x3a):] }), "", ""},
		"more shape":   {subst("model-20.onnx", "\x08\x14\x08\x1e\x10\x01", "\x08\x15\x08\x1e\x10\x01"), `tensor "0.weight": it has 2400 bytes, but its shape needs 2520`, ""},
		"another type": {subst("model-20.onnx", "\x08\x14\x08\x1e\x10\x01", "\x08\x14\x08\x1e\x10\x0b"), `tensor "0.weight": it has 2400 bytes, but its shape needs 4800`, ""},
	})},
}

// fileBroken returns the ways to break a file. short and zeroed are the beginnings of the reasons that are
// expected for a file that is too short, and for a file of zeros.
func fileBroken(short, zeroed string, more map[string]breaking) map[string]breaking {
	return merged(map[string]breaking{
		"half":              {half(""), short, ""},
		"without last byte": {cut("", 1), "", ""},
		"of zeros":          {zeros(""), zeroed, ""},
		"empty":             {empty(""), "it is empty", ""},
		"100 bytes":         {head("", 100), short, ""},
		"too long":          {grow(""), "", ""},
	}, more)
}

func h5Broken(name string) map[string]breaking {
	return fileBroken("truncated", "it has no HDF5 superblock", map[string]breaking{
		"text":          {with(name, "<html></html>"), "it has no HDF5 superblock", ""},
		"8 bytes":       {head(name, 8), "truncated: it ends within its superblock", ""},
		"no magic":      {change(name, func(b []byte) []byte { b[0] = 0; return b }), "it has no HDF5 superblock", ""},
		"version":       {change(name, func(b []byte) []byte { b[8] = 7; return b }), "its superblock has the unknown version 7", ""},
		"not closed":    {change(name, notClosed), "whoever wrote it has not closed it", ""},
		"address width": {change(name, func(b []byte) []byte { b[map[bool]int{true: 13, false: 9}[b[8] < 2]] = 3; return b }), "its superblock has addresses of 3 bytes", ""},
		"one page cut":  {cut(name, 512), "truncated: it has", ""},
	})
}

func notClosed(b []byte) []byte {
	if b[8] < 2 {
		b[20] |= 1
	} else {
		b[11] |= 1
	}
	return b
}

// dcpBroken has the ways to break a checkpoint of torch.distributed.checkpoint.
var dcpBroken = map[string]breaking{
	"no metadata":         {remove(".metadata"), "", ""},
	"metadata cut":        {half(".metadata"), ".metadata: truncated: it ends within its pickle", ""},
	"metadata empty":      {empty(".metadata"), ".metadata: truncated", ""},
	"metadata of zeros":   {zeros(".metadata"), ".metadata: its pickle has the unknown opcode", ""},
	"metadata in writing": {with(".metadata.tmp", "x"), "it holds .metadata.tmp, which was not finished", ""},
	"no piece":            {remove("__1_0.distcp"), ".metadata: __1_0.distcp: it is missing", ""},
	"piece cut":           {half("__1_0.distcp"), ".metadata: __1_0.distcp: truncated", ""},
	"piece empty":         {empty("__0_0.distcp"), ".metadata: __0_0.distcp: truncated: it has 0 bytes", ""},
	"piece of zeros":      {zeros("__0_0.distcp"), ".metadata: __0_0.distcp: the piece at byte 0 does not begin like one of torch.save", ""},
	"last byte":           {cut("__0_0.distcp", 1), ".metadata: __0_0.distcp: truncated", ""},
	"bit":                 {flip("__0_0.distcp"), ".metadata: __0_0.distcp: truncated: entry", ""},
	"other pieces":        {change("__0_0.distcp", func(b []byte) []byte { return append([]byte("header: "), b...) }), ".metadata: __0_0.distcp: the piece at byte 0", ""},
	"dangling":            {dangling("__1_0.distcp"), "__1_0.distcp is gone, or a link to nothing", ""},
	"old metadata":        {younger("__1_0.distcp", time.Hour), "suspect: __1_0.distcp is newer than .metadata, which is written last", Suspect},
}

// rezip changes an entry of a zip archive. If how is nil, it removes the entry.
func rezip(entry string, how func([]byte) []byte) func(string) error {
	return func(path string) error { return rewriteZip(path, entry, how) }
}

// TestBroken breaks every checkpoint in every way. It expects that gangrun tells the reason, and that every
// checkpoint is good before it is broken.
func TestBroken(t *testing.T) {
	t.Parallel()
	made := formatsMade(t)
	for _, f := range families {
		t.Run(strings.ReplaceAll(f.path, "/", "_"), func(t *testing.T) {
			t.Parallel()
			whole := Listed{}
			for _, l := range listOf(t, filepath.Dir(filepath.Join(made, f.path))) {
				if l.Path == filepath.Join(made, f.path) {
					whole = l
				}
			}
			if whole.Format != f.format || whole.Verdict != Good && f.broken["nothing"].verdict == "" || whole.Step != 20 {
				t.Fatalf("whole, it is %+v", whole)
			}
			if n := len(f.broken); n < 12 && f.broken["nothing"].verdict == "" {
				t.Errorf("there are only %d ways of breaking it", n)
			}
			for name, b := range f.broken {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					parent := filepath.Join(t.TempDir(), "x")
					if err := os.CopyFS(parent, os.DirFS(filepath.Dir(filepath.Join(made, f.path)))); err != nil {
						t.Fatal(err)
					}
					path := filepath.Join(parent, filepath.Base(f.path))
					if err := breakIt(path, b.do); err != nil {
						t.Fatal(err)
					}
					expectBroken(t, path, b)
				})
			}
		})
	}
}

// breakIt breaks a checkpoint. It calls do with path. If path is a file and do fails, it calls do with the
// directory of the file.
func breakIt(path string, do func(string) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return do(path)
	}
	if err := do(path); err == nil {
		return nil
	}
	return do(filepath.Dir(path))
}

func listOf(t *testing.T, dir string) []Listed {
	t.Helper()
	list, err := List(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// expectBroken expects that Verify and List give the same reason for a broken checkpoint.
func expectBroken(t *testing.T, path string, b breaking) {
	t.Helper()
	want := b.verdict
	if want == "" {
		want = Broken
		var incomplete *IncompleteError
		if c, err := Verify(t.Context(), path); !errors.As(err, &incomplete) || !strings.HasPrefix(incomplete.Reason, b.want) {
			t.Errorf("it is %+v (%v), want %q", c, err, b.want)
		}
	}
	for _, l := range listOf(t, filepath.Dir(path)) {
		if l.Path != path {
			continue
		}
		if l.Verdict != want || !strings.HasPrefix(l.Why, b.want) {
			t.Errorf("it is listed as %s: %s, want %s: %s", l.Verdict, l.Why, want, b.want)
		}
		return
	}
	t.Error(fmt.Errorf("%s is not listed", path))
}
