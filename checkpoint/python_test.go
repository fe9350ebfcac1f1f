package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// made has the directories that madeOnce has made. TestMain removes them.
var made []string

// madeOnce returns a function that returns a directory of checkpoints. At the first call, a Python script that
// gets the name of the directory makes the checkpoints, and then the functions in then add theirs.
func madeOnce(script string, then ...func(dir string) error) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "checkpoint")
		if err != nil {
			return "", err
		}
		made = append(made, dir)
		if out, err := exec.Command("/usr/bin/python3", "-c", script, dir).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w: %s", err, out)
		}
		for _, f := range then {
			if err := f(dir); err != nil {
				return dir, err
			}
		}
		return dir, nil
	})
}

// real makes checkpoints with the programs that write such checkpoints for users.
var real = madeOnce(realScript)

// realFile returns the content of a file that real has made.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	dir, err := real()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

const realScript = dcpScript + `
import bz2, gzip, zipfile, zlib
import numpy as np

os.chdir(sys.argv[1])
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 5)).sum().backward()
optimizer.step()
dtypes = torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 20,
         "typed": [torch.ones(3, dtype=d) for d in dtypes], "empty": torch.empty(0), "view": torch.arange(10.)[2:4]}
torch.save(state, "zip.pt")
torch.jit.script(model).save("script.pt")
old = dict(_use_new_zipfile_serialization=False)
torch.save(state, "legacy.pt", **old)
torch.save(state, "legacy4.pt", pickle_protocol=4, **old)
torch.save(model, "legacy-module.pt", **old)
torch.save(torch.quantize_per_tensor(torch.ones(3), 0.1, 1, torch.quint8), "legacy-quantized.pt", **old)
torch.save(torch.arange(5).storage(), "legacy-storage.pt", **old)
torch.save(torch.eye(3).to_sparse(), "legacy-sparse.pt", **old)
torch.save(1, "legacy-scalar.pt", **old)

value = {"array": np.arange(50.), "list": [1, 2.5, "text", b"bytes", None, True, 2**80, -5, {1, 2}, frozenset([3]), (1,)],
         "long": list(range(300)), "buffer": bytearray(b"q" * 300)}
for protocol in range(6):
    with open(f"protocol{protocol}.pkl", "wb") as f:
        pickle.dump(value, f, protocol=protocol)
with open("several.pkl", "wb") as f:
    pickle.dump({"meta": 1}, f)
    pickle.dump(np.ones(3), f)
with open("mixed.pkl", "wb") as f:
    pickle.dump({"meta": 1}, f)
    np.save(f, np.ones(3))

np.savez("arrays.npz", a=np.arange(10.), b=np.array(["x", "yy"]), c=np.array([{}, 1], dtype=object))
np.savez_compressed("packed.npz", a=np.arange(200) % 7)
np.save("fortran.npy", np.asfortranarray(np.ones((3, 4), "f4")))
np.save("fields.npy", np.zeros(5, [("a", "f4"), ("b", "i8", (2, 3)), ("c", "U5"), ("d", [("x", "<f4"), ("y", "S3")])]))
np.save("objects.npy", np.array([1, "x", None], dtype=object))
np.save("scalar.npy", np.float64(3))
np.save("nothing.npy", np.ones((0, 3)))
np.save("dates.npy", np.array(["2020-01-01"], dtype="M8[D]"))
with open("several.npy", "wb") as f:
    for i in range(3):
        np.save(f, np.arange(i))
    np.save(f, np.array([None, {}]))
    np.save(f, np.arange(3))

with zipfile.ZipFile("zip64.zip", "w") as z:
    with z.open("big", "w", force_zip64=True) as f:
        f.write(b"x" * 500)
    z.writestr("packed", b"y" * 500, zipfile.ZIP_DEFLATED)
    z.comment = b"a comment"
with open("joblib.pkl", "wb") as f:
    f.write(zlib.compress(pickle.dumps(value)))
with gzip.open("weights.gz", "wb") as f:
    f.write(pickle.dumps(value))
with bz2.open("weights.bz2", "wb") as f:
    f.write(pickle.dumps(value))

dcp("dcp-20")
`

// dcpScript defines dcp, which writes a checkpoint of torch.distributed.checkpoint. It does not use the classes
// of torch, which need a newer version. It writes pieces with torch.save, one after another, and a pickle with
// the place of each.
const dcpScript = `
import io, os, pickle, sys, types
import torch

module = types.ModuleType("torch.distributed.checkpoint.filesystem")
sys.modules[module.__name__] = module
class _StorageInfo:
    def __init__(self, relative_path, offset, length):
        self.relative_path, self.offset, self.length = relative_path, offset, length
class MetadataIndex:
    def __init__(self, fqn):
        self.fqn = fqn
class Metadata:
    pass
for c in _StorageInfo, MetadataIndex, Metadata:
    c.__module__, c.__qualname__ = module.__name__, c.__name__
    setattr(module, c.__name__, c)
def dcp(dir):
    os.makedirs(dir)
    metadata = Metadata()
    metadata.state_dict_metadata, metadata.planner_data, metadata.storage_data = {"step": None}, None, {}
    for rank in range(2):
        name = f"__{rank}_0.distcp"
        with open(f"{dir}/{name}", "wb") as f:
            for key in "weight", "bias":
                piece = io.BytesIO()
                torch.save(torch.ones(rank + 20), piece)
                metadata.storage_data[MetadataIndex(f"{key}{rank}")] = _StorageInfo(name, f.tell(), len(piece.getvalue()))
                f.write(piece.getvalue())
    with open(f"{dir}/.metadata", "wb") as f:
        pickle.dump(metadata, f)
`
