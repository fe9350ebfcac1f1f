package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/layout"
	"github.com/gangrun/gangrun/checkpoint/ocdbt"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/torchfile"
)

// checkLayouts checks that the files of a directory that a known program has written fit together. It returns
// the format of the directory, or "".
func (d *directory) checkLayouts() (format string, err error) {
	names := make([]string, len(d.files))
	for i, m := range d.files {
		names[i] = filepath.ToSlash(m.name)
	}
	for _, set := range layout.Find(names) {
		if err := d.checkLayout(set); err != nil {
			if set.Dir == "." {
				return "", err
			}
			return "", flaw.Within(set.Dir, err)
		}
		if format == "" && (set.Dir == "." || d.only(set.Dir)) {
			format = set.Format
		}
	}
	for _, m := range d.files {
		if path.Base(m.name) != dcpMetadata {
			continue
		}
		if late := d.writtenAfter(m); late != "" {
			d.pool.Seen.NoteDoubt("suspect: "+late+" is newer than "+m.name+", which is written last: it may be of an earlier save", false)
		}
	}
	return format, nil
}

// only reports whether all files of the checkpoint are below dir, as in a checkpoint that Lightning writes with
// DeepSpeed.
func (d *directory) only(dir string) bool {
	for _, m := range d.files {
		if !strings.HasPrefix(filepath.ToSlash(m.name), dir+"/") && !bookkeeping(filepath.Base(m.name), m.size) {
			return false
		}
	}
	return true
}

// stale is how much newer than the metadata a data file must be for gangrun to suspect that they are of two
// saves.
const stale = 10 * time.Second

// writtenAfter returns the name of a file of torch.distributed.checkpoint that is newer than the metadata
// beside it, or "".
func (d *directory) writtenAfter(metadata member) string {
	for _, m := range d.files {
		if filepath.Dir(m.name) == filepath.Dir(metadata.name) && strings.HasSuffix(m.name, dcpSuffix) && m.time.Sub(metadata.time) > stale {
			return m.name
		}
	}
	return ""
}

func (d *directory) checkLayout(set layout.Set) error {
	switch set.Format {
	case layout.DeepSpeed:
		return d.checkDeepSpeed(set)
	case layout.Universal:
		return set.CheckUniversal()
	case layout.Megatron:
		return d.checkMegatron(set)
	case layout.Trainer:
		return d.checkTrainer(set)
	case layout.Orbax:
		return d.checkOrbax(set)
	}
	return nil
}

// object returns the object in the pickle of a torch file of a set. It returns nil if there is none that
// gangrun can read.
func (d *directory) object(set layout.Set, name string, options ...string) (*torchfile.Object, error) {
	if name == "" {
		return nil, nil
	}
	f, err := d.pool.Get(filepath.Join(d.root, set.Dir, name))
	if err != nil {
		return nil, err
	}
	head, err := f.Bytes(0, min(f.Size, 4))
	if err != nil || string(head) != archive.Local {
		return nil, err
	}
	o, err := archive.Object(f, options...)
	return o, flaw.Within(name, err)
}

// get follows keys through nested dicts of a pickled object, and returns the value. It returns nil if a key is
// missing.
func get(o *torchfile.Object, keys ...string) any {
	if o == nil {
		return nil
	}
	v := o.Root
	for _, key := range keys {
		dict, ok := v.(*pickle.Dict)
		if !ok {
			return nil
		}
		v = dict.Get(key)
	}
	return v
}

func (d *directory) checkDeepSpeed(set layout.Set) error {
	var says layout.DeepSpeedSays
	model, optimizer := set.DeepSpeedFiles()
	o, err := d.object(set, model)
	if err != nil {
		return err
	}
	says.Known = o != nil
	says.ModelRanks, _ = get(o, "mp_world_size").(int64)
	_, says.Optimizer = get(o, "optimizer").(*pickle.Dict)
	if o, err = d.object(set, optimizer); err != nil {
		return err
	}
	switch n := get(o, "optimizer_state_dict", "partition_count").(type) {
	case int64:
		says.Partitions = n
	case *pickle.List: // one for each group of parameters
		for _, item := range n.Items {
			n, _ := item.(int64)
			says.Partitions = max(says.Partitions, n)
		}
	}
	return set.CheckDeepSpeed(says)
}

func (d *directory) checkMegatron(set layout.Set) error {
	const tensor, pipeline = "tensor_model_parallel_size", "pipeline_model_parallel_size"
	o, err := d.object(set, set.MegatronFile(), tensor, pipeline)
	if err != nil {
		return err
	}
	var says layout.MegatronSays
	if o != nil {
		says = layout.MegatronSays{Tensor: o.Options[tensor], Pipeline: o.Options[pipeline]}
	}
	if err := set.CheckMegatron(says); err != nil {
		return err
	}
	if set.Dir != "." {
		return nil
	}
	tracker, err := d.text(filepath.Join("..", layout.Tracker), maxPointer)
	if err != nil || tracker == nil {
		return err
	}
	return layout.CheckTracker(filepath.Base(d.root), string(tracker))
}

// maxState is the maximum size of trainer_state.json, in bytes. The file has an entry for every time that the
// loss was logged.
const maxState = 64 << 20

func (d *directory) checkTrainer(set layout.Set) error {
	state, err := d.text(filepath.Join(set.Dir, "trainer_state.json"), maxState)
	if err != nil {
		return err
	}
	if err := set.CheckFiles(); err != nil {
		return err
	}
	if set.WeightsOnly() {
		d.pool.Seen.NoteDoubt("it has only weights: they can be loaded, but a training cannot resume from them", true)
	}
	return set.CheckTrainer(filepath.Base(filepath.Join(d.root, set.Dir)), state)
}

func (d *directory) checkOrbax(set layout.Set) error {
	commit, err := d.text(filepath.Join(set.Dir, layout.OrbaxCommit), maxPointer<<4)
	if err != nil {
		return err
	}
	if err := set.CheckOrbax(commit); err != nil || !set.Has(layout.OrbaxManifest) {
		return err
	}
	manifest, done, err := blob.Open(d.pool.Ctx, filepath.Join(d.root, set.Dir, layout.OrbaxManifest), d.pool.Seen)
	if err != nil {
		return err
	}
	defer done()
	return flaw.Within(layout.OrbaxManifest, ocdbt.Check(manifest, func(name string) (*blob.File, error) {
		return d.pool.Get(filepath.Join(d.root, set.Dir, name))
	}))
}

// text returns the content of a small file below or beside the directory. It returns nil if the file does not
// exist, or is too big.
func (d *directory) text(name string, most int64) ([]byte, error) {
	f, done, err := blob.Open(d.pool.Ctx, filepath.Join(d.root, name), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer done()
	if f.Size > most {
		return nil, nil
	}
	return f.Bytes(0, f.Size)
}

// checkMegatronDist checks metadata.json of Megatron's newer format, which says how the tensors are stored. It
// returns the format of the directory, or "" if the file is not Megatron's.
func (d *directory) checkMegatronDist(m member) (string, error) {
	content, err := d.text(m.name, maxPointer)
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(content), `"sharded_backend"`) {
		return "", nil
	}
	dir := filepath.Dir(m.name)
	if strings.Contains(string(content), `"torch_dist"`) && !d.files.has(filepath.Join(dir, dcpMetadata)) {
		return "", flaw.New("%s is missing: it was not finished", dcpMetadata)
	}
	return layout.Megatron, nil
}

// exists reports whether there is a file at path. It does not follow a link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
