package checkpoint

import "testing"

// formats makes checkpoints of several trainers. torch, numpy and h5py write the files. Their names and keys
// are those of DeepSpeed, Megatron, transformers, Lightning and Keras, which Debian does not have.
var formats = madeOnce(formatsScript, makeOrbax)

// formatsMade returns the directory with the checkpoints.
func formatsMade(t testing.TB) string {
	t.Helper()
	dir, err := formats()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const formatsScript = dcpScript + `
import argparse, json, struct, zipfile, collections
import numpy as np
import h5py

os.chdir(sys.argv[1])
torch.manual_seed(1)

def save(value, name):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    torch.save(value, name)

def text(name, content):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w") as f:
        f.write(content)

def weights():
    return collections.OrderedDict(weight=torch.rand(20, 30), bias=torch.rand(20))

def adam():
    return {"state": {0: {"step": torch.tensor(3.), "exp_avg": torch.rand(20, 30)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}

# DeepSpeed: ZeRO-1 of 2 x 2 ranks, ZeRO-3 of 3, none of 1.
def model_states(mp, dp, optimizer=None):
    return {"module": weights(), "buffer_names": [], "optimizer": optimizer, "lr_scheduler": None, "global_steps": 20,
            "dp_world_size": dp, "mp_world_size": mp, "ds_config": {"a": 1}, "ds_version": "0.14.0"}
for mp in range(2):
    save(model_states(2, 2), f"zero1/global_step20/mp_rank_{mp:02}_model_states.pt")
    for dp in range(2):
        save({"optimizer_state_dict": {"zero_stage": 1, "partition_count": [2, 2], "single_partition_of_fp32_groups": [torch.rand(99)]}},
             f"zero1/global_step20/bf16_zero_pp_rank_{dp}_mp_rank_{mp:02}_optim_states.pt")
for dp in range(3):
    save(model_states(1, 3), f"zero3/global_step20/zero_pp_rank_{dp}_mp_rank_00_model_states.pt")
    save({"optimizer_state_dict": {"zero_stage": 3, "partition_count": 3, "fp32_flat_groups": [torch.rand(99)]}},
         f"zero3/global_step20/zero_pp_rank_{dp}_mp_rank_00_optim_states.pt")
save(model_states(1, 1, adam()), "zero0/global_step20/mp_rank_00_model_states.pt")
for name in "zero1", "zero3", "zero0":
    text(f"{name}/latest", "global_step20")
    text(f"{name}/zero_to_fp32.py", "print()")
for param in "lm_head.weight", "layers.0.bias":
    for state in "fp32", "exp_avg", "exp_avg_sq":
        save({"param": torch.rand(9)}, f"universal/global_step20/zero/{param}/{state}.pt")
save(model_states(1, 2), "universal/global_step20/mp_rank_00_model_states.pt")
text("universal/latest_universal", "global_step20")

# Megatron: the older format of 2 x 2 ranks; torch_dist.
for tp in range(2):
    for pp in range(2):
        args = argparse.Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=2, lr=0.1, iteration=20)
        save({"args": args, "checkpoint_version": 3.0, "iteration": 20, "model": weights()}, f"megatron/iter_0000020/mp_rank_{tp:02}_{pp:03}/model_optim_rng.pt")
        save({0: {0: weights()}}, f"megatron/iter_0000020/mp_rank_{tp:02}_{pp:03}/distrib_optim.pt")
text("megatron/latest_checkpointed_iteration.txt", "20")

dcp("torchdist/iter_0000020")
text("torchdist/iter_0000020/metadata.json", '{"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}')
save({"iteration": 20}, "torchdist/iter_0000020/common.pt")
text("torchdist/latest_checkpointed_iteration.txt", "20")
dcp("dcp/step-20")

# The Trainer of Hugging Face.
def safetensors(name, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for key, value in tensors.items():
        raw = value.numpy().tobytes()
        header[key] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(header).encode()
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)
hf = "trainer/checkpoint-20/"
for i in 1, 2:
    safetensors(f"{hf}model-{i:05}-of-00002.safetensors", weights())
text(hf + "model.safetensors.index.json", json.dumps({"metadata": {"total_size": 5}, "weight_map": {"weight": "model-00001-of-00002.safetensors", "bias": "model-00002-of-00002.safetensors"}}))
text(hf + "config.json", "{}")
text(hf + "trainer_state.json", json.dumps({"global_step": 20, "log_history": [{"loss": float("nan"), "step": 10}]}))
for name in "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "rng_state_1.pth":
    save(adam(), hf + name)

# Lightning.
save({"epoch": 3, "global_step": 20, "pytorch-lightning_version": "2.2.0", "state_dict": weights(), "loops": {}, "callbacks": {}, "optimizer_states": [adam()], "lr_schedulers": []},
     "lightning/epoch=3-step=20.ckpt")
save({"epoch": 3, "global_step": 20, "pytorch-lightning_version": "2.2.0", "state_dict": weights()}, "lightning-weights/epoch=3-step=20.ckpt")

# Keras.
os.makedirs("keras"), os.makedirs("keras-weights")
with h5py.File("keras-weights/ckpt-20.weights.h5", "w") as f:
    for layer in range(3):
        f.create_dataset(f"layers/dense_{layer}/vars/0", data=np.random.rand(20, 30).astype("f4"))
        f.create_dataset(f"optimizer/vars/{layer}", data=np.random.rand(20, 30).astype("f4"))
with zipfile.ZipFile("keras/model-20.keras", "w") as z:
    z.writestr("metadata.json", '{"keras_version": "3.0.0", "date_saved": "2026-01-01"}')
    z.writestr("config.json", "{}")
    z.write("keras-weights/ckpt-20.weights.h5", "model.weights.h5")
os.makedirs("hdf5")
for version in "earliest", "latest":
    with h5py.File(f"hdf5/{version}-20.h5", "w", libver=version) as f:
        f["x"] = np.arange(100.)

# ONNX, by torch's own exporter.
os.makedirs("onnx")
model = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.ReLU(), torch.nn.Linear(20, 10))
torch.onnx.export(model, torch.rand(1, 30), "onnx/model-20.onnx")

# Numbers that are not finite.
def spoilt(value):
    bad = torch.rand(20, 30)
    bad[3, 4] = value
    return {"model": {"layer.weight": bad, "ok": torch.rand(5)}}
nan, inf = float("nan"), float("inf")
os.makedirs("deep")
torch.save(spoilt(nan), "deep/nan-1.pt")
torch.save(spoilt(inf), "deep/inf-1.pt")
torch.save(spoilt(-inf), "deep/mask-1.pt")
torch.save(spoilt(nan), "deep/legacy-1.pt", _use_new_zipfile_serialization=False)
torch.save({"h": torch.tensor([1., nan]).half(), "b": torch.tensor([1., 2.]).bfloat16(), "i": torch.arange(5)}, "deep/half-1.pt")
np.savez("deep/arrays-1.npz", a=np.ones(5), b=np.array([1, nan]))
np.savez_compressed("deep/packed-1.npz", a=np.ones(5), b=np.array([1, nan], dtype=">f4"))
np.save("deep/array-1.npy", np.array([[1, inf]]))
safetensors("deep/nan-1.safetensors", {"a": torch.rand(3), "b": torch.tensor([nan, 1.])})
with torch.no_grad():
    model[2].bias[1] = nan
torch.onnx.export(model, torch.rand(1, 30), "deep/nan-1.onnx")
for name, value in ("deep/good-1.pt", 1.0), ("deep/good-2.pt", 2.0):
    torch.save(spoilt(value), name)
`
