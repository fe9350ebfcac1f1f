"""What the jobs of this directory share: a training that only takes its time, and simulated GPUs.

FAIL_AFTER is the number of seconds after which a job fails. A rank has the GPU that gangrun gives
it; mpirun gives none, so that there rank N takes GPU N, as torch.cuda.set_device(LOCAL_RANK) does.
"""
import os
import pickle
import time

STEP, EVERY = 0.2, 10  # seconds of a step; steps between checkpoints
after = float(os.environ.get("FAIL_AFTER", "1"))
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("RANK") or 0)
gpu = os.environ.get("GANGRUN_GPUS") or f"GPU{rank}"
sick = gpu == "GPU0"
first = (os.environ.get("GANGRUN_ATTEMPT") or os.environ.get("TRY") or "1") in ("0", "1")


def train(fault):
    """Takes steps, and calls fault when it is time for the failure; three steps more are the whole job."""
    step, last, saved, resume = 0, round(after / STEP), None, os.environ.get("GANGRUN_RESUME_FROM")
    if resume:
        step = load_checkpoint(resume)["step"]
    while step < last + 3:
        if step == last:
            fault(saved)
        time.sleep(STEP)
        step += 1
        print(f"step {step}/{last + 3} loss {2 / step:.4f}", flush=True)
        if rank == 0 and step % EVERY == 0:
            saved = save_checkpoint(step)


def save_checkpoint(step):
    path = os.path.join(os.environ["GANGRUN_CHECKPOINT_DIR"], f"step-{step:06d}.pkl")
    with open(path + ".tmp", "wb") as file:
        pickle.dump({"step": step, "weights": [1 / step] * 1000}, file)
    os.replace(path + ".tmp", path)
    return path


def load_checkpoint(path):
    with open(path, "rb") as file:
        return pickle.load(file)
