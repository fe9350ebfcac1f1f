#!/usr/bin/env python3
"""Adds numbers up with all ranks (torch, gloo), STEPS times, waits SECONDS after
each and checks every sum. It prints the same as steady.sh and steady.c. With a FILE,
the last step waits until that is there."""
import os
import sys
import time

import torch
import torch.distributed as dist

if len(sys.argv) not in (3, 4):
    sys.exit("usage: steady.py STEPS SECONDS [FILE]")
steps, seconds = int(sys.argv[1]), float(sys.argv[2])
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for i in range(1, steps + 1):
    while i == steps and len(sys.argv) == 4 and not os.path.exists(sys.argv[3]):
        time.sleep(0.02)
    mine = torch.tensor([(rank + 1) * i])
    dist.all_reduce(mine)
    if mine.item() != size * (size + 1) // 2 * i:
        raise ArithmeticError(f"step {i}: the sum is {mine.item()}")
    print(f"rank {rank} of {size}: step {i}/{steps}")
    print(f"rank {rank} of {size}: note {i}", file=sys.stderr)
    time.sleep(seconds)
dist.destroy_process_group()
