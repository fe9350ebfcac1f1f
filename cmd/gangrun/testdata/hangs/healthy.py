"""healthy.py KIND SECONDS: ranks that work together, irregularly, and end well.

KIND is evaluation, think, compile, checkpoint, uneven, quiet, first or idle. SECONDS is how long the longest
pause takes."""
import mmap
import os
import random
import sys
import time

from hang import Group, rank  # the same meeting point

kind, pause = sys.argv[1], float(sys.argv[2])
random.seed(os.environ.get("GANGRUN_RUN", "") + kind)


def compute(seconds):
    """Uses the processor, and new memory again and again, as a compiler does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with mmap.mmap(-1, 1 << 22) as x:
            for i in range(0, len(x), 4096):
                x[i] = 1


def evaluate(seconds):
    """Reads data."""
    end = time.monotonic() + seconds
    with open("/dev/zero", "rb") as f:
        while time.monotonic() < end:
            f.read(1 << 20)
            time.sleep(0.01)


def spin(seconds):
    """Uses the processor only."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def save(seconds):
    """Writes a checkpoint slowly."""
    end = time.monotonic() + seconds
    with open(f"/tmp/healthy-{os.getpid()}", "wb") as f:
        while time.monotonic() < end:
            f.write(bytes(1 << 20))
            f.seek(0)
            time.sleep(0.01)
    os.unlink(f.name)


def step(number):
    if kind != "quiet" and (kind != "first" or rank == 0):
        print(f"step {number} loss {1 / (number + 1):.3f}", flush=True)


group = Group()
if kind == "compile" and rank == 0:
    print("compiling", flush=True)
    compute(pause)
if kind == "quiet":
    print("starting", flush=True)
    spin(pause)
for number in range(30):
    if kind == "uneven":
        spin(random.choice([0.01, 0.02, 0.05, pause / 5]))
    elif kind == "idle" and rank == 0:
        pass  # it only waits for the others
    else:
        spin(0.03)
    group.barrier()
    step(number)
    if number == 15 and rank == 0:
        if kind == "evaluation":
            evaluate(pause)
        elif kind == "think":
            spin(pause)
        elif kind == "checkpoint":
            save(pause)
    group.barrier()
if kind == "quiet":
    print("step 29 loss 0.03", flush=True)
