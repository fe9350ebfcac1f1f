# A job whose result depends on every step of every rank, once: what a rank has is
# multiplied at each step and mixed with what the others have at every fifth, of
# which rank 0 writes a checkpoint. All that is printed is also kept in DIR/own, and
# all that is written to the checkpoints is stamped in DIR/stamps.
# The last step waits until there is no DIR/hold.
#   tally.py DIR STEPS SECONDS
import json, os, sys, time

root, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rank, size, attempt = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["GANGRUN_ATTEMPT"]
resume, host = os.environ["GANGRUN_RESUME_FROM"], os.uname().nodename
checkpoints = os.environ["GANGRUN_CHECKPOINT_DIR"]
MASK = (1 << 64) - 1


def append(path):
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


stamps = append(root + "/stamps")
own = [append(f"{root}/own/{attempt}.{rank}.{stream}") for stream in ("out", "err")]


def stamp(what):
    os.write(stamps, f"{attempt} {rank} {host} {time.monotonic():.6f} {what}\n".encode())


def say(text):
    for stream in (0, 1):
        line = f"{time.monotonic():.6f} rank {rank} of {size}, attempt {attempt}: {text}\n".encode()
        os.write(own[stream], line)
        os.write(1 + stream, line)


def put(path, value):
    with open(path + ".tmp", "w") as f:
        json.dump(value, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def take(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path) as f:
        return json.load(f)


state = {"step": 0, "x": list(range(1, size + 1))}
if resume:
    state = take(resume)
step, x = state["step"], state["x"][rank]
stamp("begins")
while step < steps:
    step += 1
    while step == steps and os.path.exists(root + "/hold"):
        time.sleep(0.01)
    x = (x * 6364136223846793005 + rank + step) & MASK
    say(f"step {step}/{steps} {x}")
    if step % 5 == 0:
        part = f"{root}/parts/{attempt}.{step}"
        put(f"{part}.{rank}", x)
        if rank == 0:
            parts = [take(f"{part}.{r}") for r in range(size)]
            total = sum(parts) & MASK
            stamp("writes")
            put(f"{checkpoints}/ckpt-{step:06d}.json", {"step": step, "x": [p ^ total for p in parts]})
            stamp("has written")
            put(f"{part}.all", total)
        x ^= take(f"{part}.all")
    else:
        stamp("goes on")
    time.sleep(seconds)
put(f"{root}/result.{rank}", x)
stamp("ends")
