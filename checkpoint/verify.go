package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/compressed"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/hdf5"
	"github.com/gangrun/gangrun/checkpoint/numpy"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/safetensors"
	"github.com/gangrun/gangrun/checkpoint/sstable"
	"github.com/gangrun/gangrun/checkpoint/tensorflow"
	"github.com/gangrun/gangrun/checkpoint/torchfile"
	"github.com/gangrun/gangrun/internal/job"
)

// The formats of checkpoints, as job.Checkpoint names them.
const (
	formatTorch       = archive.Torch  // torch.save's zip archive
	formatLegacy      = "torch-legacy" // torch.save's older format
	formatPickle      = "pickle"
	formatNPZ         = archive.NPZ
	formatNPY         = "npy"
	formatZip         = archive.Zip
	formatSafetensors = "safetensors"
	formatHDF5        = "hdf5"
	formatCompressed  = "compressed" // gzip, bzip2 or zlib
	formatTensorFlow  = "tensorflow" // .index and .data files
	formatDCP         = "dcp"        // directory of torch.distributed.checkpoint
	formatHF          = "hf-sharded" // directory with an index.json
	formatDirectory   = "directory"  // a directory of any other files
	formatJSON        = "json"
	formatONNX        = "onnx"
	formatLightning   = "lightning" // a file of torch.save that Lightning's Trainer wrote
	formatPlain       = "plain"     // any other file: gangrun looks only at its size
)

// settle is how long gangrun waits before it looks again whether a file has changed. It does this for files
// whose structure does not show that they are complete.
const settle = 200 * time.Millisecond

// IncompleteError reports why a file or directory is not a complete checkpoint.
type IncompleteError struct {
	Path   string
	Reason string // as in "truncated: entry archive/data/3 fails its CRC"
}

// Error returns the path and the reason.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%q is not complete: %s", e.Path, e.Reason)
}

// Verify reads a checkpoint and returns its description. path is a file, a directory, or the prefix of
// TensorFlow's files. The error is an *IncompleteError if the structure of the checkpoint shows that it is not
// complete, and another error if the checkpoint cannot be read. Verify reads every byte that has a checksum, in
// bounded memory, until ctx is done.
func Verify(ctx context.Context, path string) (job.Checkpoint, error) {
	c, _, err := verify(ctx, path, &blob.Seen{})
	return c, err
}

// verify is Verify. It also returns the files of the checkpoint that may have been truncated although their
// structure does not show it, and records remarks in seen.
func verify(ctx context.Context, path string, seen *blob.Seen) (c job.Checkpoint, open tree, err error) {
	c, open, rest, err := verifyOnce(ctx, path, seen)
	if err == nil {
		err = settled(ctx, rest)
	}
	if flaw.Is(err) {
		err = &IncompleteError{filepath.Clean(path), err.Error()}
	}
	if err != nil {
		return job.Checkpoint{}, nil, err
	}
	return c, open, nil
}

// verifyOnce is verify, but does not wait to find out whether files are still being written. It returns the
// files for which the caller must do so.
func verifyOnce(ctx context.Context, path string, seen *blob.Seen) (c job.Checkpoint, open tree, rest []unsettled, err error) {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if prefix, ok := tensorFlowPrefix(path); ok {
		path = prefix
		c, err = verifyTensorFlow(ctx, prefix, seen)
	} else if err == nil && info.IsDir() {
		var files tree
		c, open, files, err = verifyDirectory(ctx, path, seen)
		rest = []unsettled{{path, files}}
	} else if err == nil {
		c, err = verifyFile(ctx, path, path, seen)
		if one := (tree{{filepath.Base(path), c.Bytes, c.Time}}); err == nil && isOpen(c.Format) {
			open = one
			if programOfFormat(c.Format) != nil || c.Format == formatPlain {
				rest = []unsettled{{path, one}}
			}
		}
	} else if base, ok := lammpsBase(path); ok {
		c, err = verifyLAMMPS(ctx, path, base)
	}
	c.Path, c.Step = path, stepOf(filepath.Base(path), c.Format)
	return c, open, rest, err
}

// verifyFile checks one file of the candidate root. It checks only that a plain file is not empty.
func verifyFile(ctx context.Context, root, path string, seen *blob.Seen) (job.Checkpoint, error) {
	f, done, err := blob.Open(ctx, path, seen)
	if err != nil {
		return job.Checkpoint{}, err
	}
	defer done()
	if f.Size == 0 {
		return job.Checkpoint{}, flaw.New("it is empty")
	}
	head, err := f.Bytes(0, min(f.Size, 64))
	if err != nil {
		return job.Checkpoint{}, err
	}
	format, err := check(f, judged(root, path, head), path)
	if err != nil {
		return job.Checkpoint{}, err
	}
	info, err := f.R.(*os.File).Stat()
	if err != nil {
		return job.Checkpoint{}, err
	}
	if info.Size() != f.Size {
		return job.Checkpoint{}, flaw.New("it is still being written")
	}
	return job.Checkpoint{Format: format, Bytes: f.Size, Time: info.ModTime()}, nil
}

// formatNeither is the format of a file that has the name of a torch file, but not the content of one.
const formatNeither = "neither"

// pickleNames has the extensions of pickles. A file that begins like a pickle is one only if it has one of
// these extensions.
var pickleNames = []string{"", ".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".p", ".pk", ".sav", ".tar", ".model", ".joblib"}

// sniff returns the format of a file. It uses the file's first bytes, and its name if the bytes do not show the
// format.
func sniff(name string, head []byte) string {
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	ext := strings.ToLower(filepath.Ext(name))
	switch {
	case ext == ".safetensors":
		return formatSafetensors
	case ext == ".onnx":
		return formatONNX
	case programOf(name, head) != nil:
		return programOf(name, head).format
	case starts(archive.Local):
		return formatZip
	case starts(numpy.Magic):
		return formatNPY
	case starts(hdf5.Magic):
		return formatHDF5
	case pickle.Begins(head) && torchfile.IsLegacy(head):
		return formatLegacy
	case pickle.Begins(head) && slices.Contains(pickleNames, ext):
		return formatPickle
	case starts("\x1f\x8b\x08"), starts("BZh"):
		return formatCompressed
	}
	switch {
	case ext == ".pt", ext == ".pth", lightningName().MatchString(name):
		return formatNeither
	}
	switch ext {
	case ".npz", ".keras", ".zip":
		return formatZip
	case ".gz", ".tgz", ".bz2":
		return formatCompressed
	case ".npy":
		return formatNPY
	case ".h5", ".hdf5":
		return formatHDF5
	case ".json":
		return formatJSON
	case ".pkl", ".pickle":
		if zlibbed(head) {
			return formatCompressed
		}
		return formatPickle
	case ".joblib", ".z":
		if zlibbed(head) {
			return formatCompressed
		}
	}
	return formatPlain
}

// zlibbed reports whether head begins like a zlib stream (RFC 1950, 2.2).
func zlibbed(head []byte) bool {
	return len(head) >= 2 && head[0] == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// check checks a file in the format that the file seems to have, and returns the format that the file has.
func check(f *file, format, path string) (string, error) {
	switch format {
	case formatZip:
		return checkArchive(f, path)
	case formatNPY:
		return format, numpy.Check(f)
	case formatHDF5:
		return format, hdf5.Check(f)
	case formatLegacy:
		return format, torchfile.CheckLegacy(f)
	case formatSafetensors:
		return format, safetensors.Check(f)
	case formatJSON:
		return checkJSON(f)
	case formatONNX:
		return format, checkONNX(f, path)
	case formatPickle:
		plain, err := checkPickles(f)
		if plain {
			format = formatPlain
		}
		return format, err
	case formatCompressed:
		head, err := f.Bytes(0, 1)
		if err != nil {
			return format, err
		}
		open := map[byte]func(io.Reader) (io.Reader, error){0x1f: compressed.Gzip, 'B': compressed.Bzip2, 0x78: compressed.Zlib}[head[0]]
		if open == nil {
			return format, flaw.Flaw("it does not begin like a compressed file")
		}
		return format, compressed.Check(f, open)
	case formatNeither:
		return format, flaw.New("it begins neither like a zip archive nor like a pickle")
	default:
		if p := programOfFormat(format); p != nil && p.check != nil {
			return format, p.check(f, path)
		}
		return format, nil
	}
}

// checkJSON checks that a JSON object or list has a closing bracket at its end. It does not parse the file,
// because Python writes NaN, which is not valid JSON. A file that does not begin like an object or a list is
// plain.
func checkJSON(f *file) (string, error) {
	const space = " \t\r\n"
	head, err := f.Bytes(0, min(f.Size, 4<<10))
	if err != nil {
		return "", err
	}
	tail, err := f.Bytes(f.Size-int64(len(head)), int64(len(head)))
	if err != nil {
		return "", err
	}
	head, tail = bytes.TrimLeft(head, space), bytes.TrimRight(tail, space)
	if len(head) == 0 || len(tail) == 0 {
		return formatPlain, nil
	}
	if end := map[byte]byte{'{': '}', '[': ']'}[head[0]]; end == 0 {
		return formatPlain, nil
	} else if tail[len(tail)-1] != end {
		return "", flaw.New("truncated: it does not end like JSON")
	}
	return formatJSON, nil
}

var tensorFlowData = re(`\.data-\d{5}-of-\d{5}$`)

// tensorFlowPrefix returns the prefix of a TensorFlow checkpoint. path is this prefix, or a file of the
// checkpoint.
func tensorFlowPrefix(path string) (prefix string, ok bool) {
	prefix = strings.TrimSuffix(path, ".index")
	if at := tensorFlowData().FindStringIndex(path); at != nil {
		prefix = path[:at[0]]
	} else if _, err := os.Stat(path); prefix == path && err == nil {
		return "", false // something else
	}
	const digits = "[0-9][0-9][0-9][0-9][0-9]"
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(prefix)
	data, err := filepath.Glob(plain + ".data-" + digits + "-of-" + digits)
	return prefix, err == nil && len(data) > 0 || isTable(prefix+".index")
}

// isTable reports whether a file ends like a TensorFlow index.
func isTable(path string) bool {
	f, done, err := openFile(context.Background(), path)
	if err != nil {
		return false
	}
	defer done()
	end, err := f.Bytes(f.Size-8, 8)
	return err == nil && le.Uint64(end) == sstable.Magic
}

func verifyTensorFlow(ctx context.Context, prefix string, seen *blob.Seen) (job.Checkpoint, error) {
	p := blob.NewPool(ctx, seen)
	defer p.Close()
	size, err := tensorflow.Check(p, prefix)
	if err != nil {
		return job.Checkpoint{}, err
	}
	info, err := os.Stat(prefix + ".index")
	if err != nil {
		return job.Checkpoint{}, err
	}
	at := info.ModTime()
	if meta, err := os.Stat(prefix + ".meta"); err == nil && meta.ModTime().After(at) {
		at = meta.ModTime() // TensorFlow 1 writes this file last
	}
	return job.Checkpoint{Format: formatTensorFlow, Bytes: size, Time: at}, nil
}

// unsettled has the files below a path that may still be being written.
type unsettled struct {
	path  string
	files tree
}

// settled waits, looks at files again, and returns a flaw if any of them has changed.
func settled(ctx context.Context, all []unsettled) error {
	if len(all) == 0 {
		return nil
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	for _, u := range all {
		after, err := lookAt(u.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.EqualFunc(u.files, after, member.same) {
			return flaw.New("it is still being written")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
