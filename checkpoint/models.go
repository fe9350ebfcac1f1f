package checkpoint

import (
	"path/filepath"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/onnx"
)

// lightningName matches the names that Lightning gives to checkpoints.
var lightningName = re(`^(epoch=\d+|.*\bstep=\d+).*\.ckpt$|^last(-v\d+)?\.ckpt$`)

// checkArchive checks a zip archive. A torch.save archive is Lightning's if it has what Lightning's Trainer
// saves.
func checkArchive(f *file, path string) (format string, err error) {
	format, err = archive.Check(f)
	if err != nil {
		return format, err
	}
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".keras":
		return format, archive.IsKeras(format)
	case ext != ".ckpt" || format != formatTorch:
		return format, nil
	}
	o, err := archive.Object(f)
	if err != nil || get(o, "pytorch-lightning_version") == nil {
		return format, err
	}
	if get(o, "optimizer_states") == nil {
		f.Seen.NoteDoubt("it has only weights: they can be loaded, but a training cannot resume from them", true)
	}
	return formatLightning, nil
}

// checkONNX checks an ONNX model, and the files beside it that have its tensors.
func checkONNX(f *file, path string) error {
	p := blob.NewPool(f.Ctx, nil)
	defer p.Close()
	return onnx.Check(f, func(name string) (*file, error) { return p.Get(filepath.Join(filepath.Dir(path), name)) })
}
