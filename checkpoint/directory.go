package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/fortran"
	"github.com/gangrun/gangrun/checkpoint/layout"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/safetensors"
	"github.com/gangrun/gangrun/checkpoint/tensorflow"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	dcpMetadata = ".metadata"
	dcpSuffix   = ".distcp"
	// megatronMetadata is the file of Megatron that says how the tensors beside the file are stored.
	megatronMetadata = "metadata.json"
)

// hfIndex matches the names of the index files for Hugging Face's sharded files.
var hfIndex = re(`\.(safetensors|bin|h5|msgpack)\.index\.json$`)

// verifyDirectory checks every file in a directory. It also checks that the files fit together, by the metadata
// of torch.distributed.checkpoint, the index of sharded files, and TensorFlow's index. Files of unknown formats
// must not be empty. open has the files that may have been truncated although they passed their checks. files
// has all files. The caller must check that none of them changes meanwhile.
func verifyDirectory(ctx context.Context, root string, seen *blob.Seen) (_ job.Checkpoint, open, files tree, _ error) {
	files, err := lookAt(root)
	if err != nil {
		return job.Checkpoint{}, nil, nil, err
	}
	d := directory{root: root, files: files, pool: blob.NewPool(ctx, seen), checked: map[string]bool{}}
	defer d.pool.Close()
	format := formatDirectory
	empty := true
	for _, m := range files {
		kind, err := d.check(m)
		if err != nil {
			return job.Checkpoint{}, nil, nil, flaw.Within(m.name, err)
		}
		if kind == "" {
			continue
		}
		empty = false
		switch kind {
		case formatDCP, formatHF, formatEspresso, layout.Megatron:
			if filepath.Dir(m.name) == "." && format != layout.Megatron {
				format = kind
			}
		default:
			if isOpen(kind) {
				open = append(open, m)
			}
		}
	}
	if empty {
		return job.Checkpoint{}, nil, nil, flaw.New("it holds no checkpoint")
	}
	laid, err := d.checkLayouts()
	if err != nil {
		return job.Checkpoint{}, nil, nil, err
	}
	if laid != "" && format != layout.Megatron {
		format = laid
	}
	return job.Checkpoint{Format: format, Bytes: files.bytes(), Time: files.newest()}, open, files, nil
}

// directory is a directory that is being verified.
type directory struct {
	root    string
	files   tree
	pool    *pool
	checked map[string]bool // prefixes of the TensorFlow checkpoints that were checked
}

// check checks one file, or what the file describes, and returns its format. The format is "" if the file is no
// part of the checkpoint.
func (d *directory) check(m member) (string, error) {
	dir, base := filepath.Split(m.name)
	path := filepath.Join(d.root, m.name)
	switch {
	case base == dcpMetadata:
		return formatDCP, d.checkDCP(m)
	case strings.HasSuffix(base, dcpSuffix):
		if !d.files.has(dir + dcpMetadata) {
			return "", flaw.New("%s is missing: it was not finished", dir+dcpMetadata)
		}
		return formatDCP, nil
	case base == megatronMetadata:
		if format, err := d.checkMegatronDist(m); format != "" || err != nil {
			return format, err
		}
	case hfIndex().MatchString(base):
		return formatHF, d.checkShards(m)
	case base == espressoSchema:
		return formatEspresso, d.checkEspresso(m)
	case espressoData().MatchString(base) && d.files.has(dir+espressoSchema):
		f, err := d.pool.Get(path)
		if err != nil {
			return "", err
		}
		return formatRecords, fortran.Check(f)
	}
	if prefix, ok := tensorFlowPrefix(path); ok {
		if d.checked[prefix] {
			return formatTensorFlow, nil
		}
		d.checked[prefix] = true
		_, err := tensorflow.Check(d.pool, prefix)
		return formatTensorFlow, err
	}
	if bookkeeping(base, m.size) {
		return "", nil
	}
	c, err := verifyFile(d.pool.Ctx, d.root, path, d.pool.Seen)
	return c.Format, err
}

// maxIndex is the maximum size of an index of sharded files, in bytes.
const maxIndex = 256 << 20

// checkShards checks that every file that an index names exists. The content of these files is checked
// separately.
func (d *directory) checkShards(m member) error {
	if m.size > maxIndex {
		return flaw.New("it has %d bytes, which is too big for an index", m.size)
	}
	f, err := d.pool.Get(filepath.Join(d.root, m.name))
	if err != nil {
		return err
	}
	content, err := f.Bytes(0, m.size)
	if err != nil {
		return flaw.Truncated("its text", err)
	}
	var index struct {
		Shards map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(content, &index); err != nil {
		return flaw.New("it cannot be read: %v", err)
	}
	tensors := map[string][]string{} // by shard
	for name, shard := range index.Shards {
		tensors[shard] = append(tensors[shard], name)
	}
	for _, shard := range slices.Sorted(maps.Keys(tensors)) {
		if !d.files.has(filepath.Join(filepath.Dir(m.name), shard)) {
			return flaw.New("its shard %s is missing", flaw.Short(shard))
		}
		if filepath.Ext(shard) == ".safetensors" {
			if err := d.checkNames(filepath.Join(filepath.Dir(m.name), shard), tensors[shard]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNames checks that a safetensors file has the tensors of these names. The file itself is checked
// separately.
func (d *directory) checkNames(shard string, names []string) error {
	f, err := d.pool.Get(filepath.Join(d.root, shard))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	if safetensors.Names(f, func(name string) { have[name] = true }) != nil {
		return f.Ctx.Err() // the check of the shard itself reports what is wrong
	}
	slices.Sort(names)
	for _, name := range names {
		if !have[name] {
			return flaw.New("its tensor %s is not in %s, where it should be: the shards may be of two saves", flaw.Short(name), flaw.Short(filepath.Base(shard)))
		}
	}
	return nil
}

// checkDCP checks a checkpoint of torch.distributed.checkpoint. Its metadata, a pickle, says
// where each piece of data is. These files must exist; if torch.save wrote them, they are
// checked as archives.
func (d *directory) checkDCP(m member) error {
	dir := filepath.Dir(m.name)
	pieces := 0
	u := &pickle.Builder{Built: func(class pickle.Global, state *pickle.Dict) error {
		if !strings.HasSuffix(string(class), " _StorageInfo") {
			return nil
		}
		pieces++
		file, _ := state.Get("relative_path").(string)
		offset, ok1 := state.Get("offset").(int64)
		length, ok2 := state.Get("length").(int64)
		if !filepath.IsLocal(file) || !ok1 || !ok2 || offset < 0 || length < 0 {
			return flaw.New("it names %q, which is no place", flaw.Short(file))
		}
		return flaw.Within(file, checkPiece(d.pool, filepath.Join(d.root, dir, file), offset, length, state.Get("transform_descriptors") == nil))
	}}
	metadata, done, err := openFile(d.pool.Ctx, filepath.Join(d.root, m.name))
	if err != nil {
		return err
	}
	defer done()
	if err = pickle.Scan(metadata.From(0).Reader, u); err != nil && err != pickle.ErrTooBig {
		return err
	}
	if pieces == 0 {
		return flaw.New("it names no data")
	}
	for _, m := range d.files { // a pickle that is too big was not read to its end, and so did not name all files
		if err == pickle.ErrTooBig && filepath.Dir(m.name) == dir && strings.HasSuffix(m.name, dcpSuffix) && m.size == 0 {
			return flaw.New("%s is empty", m.name)
		}
	}
	return nil
}

// checkPiece checks one piece of the data of torch.distributed.checkpoint. plain says that the piece is as
// torch.save wrote it, not compressed.
func checkPiece(p *pool, path string, offset, length int64, plain bool) error {
	f, err := p.Get(path)
	if errors.Is(err, fs.ErrNotExist) {
		return flaw.New("it is missing")
	}
	if err != nil {
		return err
	}
	if length > f.Size-offset {
		return flaw.New("truncated: it has %d bytes, but should have %d", f.Size, offset+length)
	}
	piece := f.Piece(offset, length)
	head, err := piece.Bytes(0, min(length, 4))
	switch {
	case err != nil:
		return err
	case string(head) == archive.Local:
		_, err = archive.Check(piece)
		return err
	case plain && length >= 4 && strings.HasSuffix(path, dcpSuffix):
		return flaw.New("the piece at byte %d does not begin like one of torch.save: the file is of another save", offset)
	}
	return nil
}
