#!/usr/bin/env python3
"""Stands in for a training: takes STEPS steps of SECONDS each, saves a checkpoint at every fifth
step, and goes on from the checkpoint that gangrun names. SEED is only printed."""
import json
import os
import sys
import time

steps, seconds = int(sys.argv[1]), float(sys.argv[2])
seed = sys.argv[3] if len(sys.argv) > 3 else "0"
rank, step = int(os.environ["RANK"]), 0
directory, resume = os.environ.get("GANGRUN_CHECKPOINT_DIR"), os.environ.get("GANGRUN_RESUME_FROM")
if resume:
    with open(resume) as file:
        step = json.load(file)["step"]
print(f"rank {rank} begins after step {step}, seed {seed}, GPUs {os.environ.get('GANGRUN_GPUS') or 'none'}", flush=True)
while step < steps:
    time.sleep(seconds)
    step += 1
    print(f"step {step}/{steps}", flush=True)
    if rank == 0 and directory and step % 5 == 0:
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, f"step-{step:06d}.json")
        with open(path + ".tmp", "w") as file:
            json.dump({"step": step, "seed": seed}, file)
        os.replace(path + ".tmp", path)
