#!/usr/bin/env python3
"""Data-parallel training on the UCI handwritten digits, made to be stopped and resumed.

Start it as a gang of ranks with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
set (gangrun does); without them it runs as one rank. It reads two more
variables: GANGRUN_CHECKPOINT_DIR, where rank 0 keeps checkpoints, and
GANGRUN_RESUME_FROM, the checkpoint to go on from. The final weights of a run
that was killed and resumed are the same, byte for byte, as those of a run of
as many ranks that was left alone.
"""
import argparse
import contextlib
import hashlib
import io
import math
import os
import re
import signal
import sys
import threading
import time
import traceback
import zipfile
from datetime import timedelta
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

PIXELS, CLASSES, BRIGHTEST = 64, 10, 16
JITTER = 0.1  # standard deviation of the noise on each pixel, of a range of 1
KEEP = 3  # checkpoints kept
COLLECTIVE_LIMIT = timedelta(seconds=30)  # a peer that is silent for so long is dead
STOP_LIMIT = 1.0  # seconds from SIGTERM in which the gang may end its step together
STOPPED = 128 + signal.SIGTERM


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read, or that another kind of run wrote."""


def parse_args(argv=None):
    p = argparse.ArgumentParser(description="Train a digit classifier with DistributedDataParallel over gloo.")
    p.add_argument("--data", type=Path, default=Path(__file__).resolve().with_name("digits.csv.gz"),
                   help="CSV of 64 pixels and a label a line, gzipped or not")
    p.add_argument("--epochs", type=int, default=25)
    p.add_argument("--batch", type=int, default=32, help="rows a rank a step")
    p.add_argument("--lr", type=float, default=0.1, help="learning rate at the first step; falls to 0 along a cosine")
    p.add_argument("--hidden", type=int, default=128, help="width of the hidden layer")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    p.add_argument("--out", type=Path, metavar="FILE",
                   help="rank 0 writes the final weights here, the same bytes for the same weights")
    p.add_argument("--step-sleep", type=float, default=0, metavar="SECONDS",
                   help="wait in every step, so that there is time to break something")
    p.add_argument("--drop-shard", type=int, metavar="RANK", help="train without this rank's share of the data")
    p.add_argument("--fail-rank", type=int, metavar="RANK",
                   help="this rank meets a batch whose labels do not fit its images ...")
    p.add_argument("--fail-step", type=int, metavar="STEP", help="... at this step")
    args = p.parse_args(argv)
    for name in ("epochs", "batch", "hidden", "checkpoint_every"):
        if getattr(args, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be at least 1, not {getattr(args, name)}")
    if (args.fail_rank is None) != (args.fail_step is None):
        p.error("--fail-rank and --fail-step go together")
    return args


def load_data(path):
    """Returns images, labels and the SHA-256 of the file."""
    table = numpy.loadtxt(path, delimiter=",", ndmin=2)
    if table.shape[1] != PIXELS + 1:
        raise ValueError(f"{path}: {table.shape[1]} columns a line, want {PIXELS} pixels and a label")
    images, labels = table[:, :PIXELS], table[:, PIXELS]
    if images.min() < 0 or images.max() > BRIGHTEST or not numpy.isin(labels, range(CLASSES)).all():
        raise ValueError(f"{path}: want pixels from 0 to {BRIGHTEST} and labels from 0 to {CLASSES - 1}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return torch.tensor(images / BRIGHTEST, dtype=torch.float32), torch.tensor(labels, dtype=torch.long), digest


def split(rows):
    """Returns the rows to train on and, a fixed fifth, those to test on."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(0))
    train = rows - rows // 5
    return order[:train], order[train:]


def epoch_order(rows, seed, epoch, rank):
    """Returns the order of a rank's rows in an epoch: a function of nothing else, so that a resumed run has the same."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed((seed * 1_000_003 + epoch) * 1_009 + rank))


def weight_bytes(net):
    """Returns the weights as bytes that are equal where the weights are."""
    return b"".join(f"{name} {t.dtype} {list(t.shape)}\n".encode() + t.numpy().tobytes()
                    for name, t in sorted(net.state_dict().items()))


def write_atomically(path, data):
    """Puts data at path, whole or not at all, also across a crash of the machine."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def prune(directory, newest):
    """Removes what is older than the KEEP last checkpoints up to step newest, and what a killed writer left."""
    steps = {int(p.stem[5:]): p for p in directory.glob("ckpt-*.pt") if re.fullmatch(r"ckpt-\d{6,}\.pt", p.name)}
    found = [steps[n] for n in sorted(steps) if n <= newest]
    for path in found[:-KEEP] + list(directory.glob(".ckpt-*.pt.tmp")):
        path.unlink(missing_ok=True)


def read_checkpoint(path, config):
    """Returns what Run.save wrote to path; refuses what is damaged or belongs to a run with another config."""
    try:
        with zipfile.ZipFile(path) as z:  # torch.load itself does not compare checksums
            damaged = z.testzip()
        if damaged:
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        state = torch.load(path, map_location="cpu")
        theirs = state["config"]
        missing = {"step", "epoch", "position", "noise", "model", "optimizer"} - state.keys()
        if missing:
            raise KeyError(", ".join(sorted(missing)))
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as e:  # zipfile, pickle and torch raise a dozen kinds
        why = f"{type(e).__name__}: {e}"
        raise CheckpointError(f"checkpoint {str(path)!r} is corrupt or incomplete ({why}); resume from an older one") from e
    differ = [f"{k} was {theirs.get(k)!r} and is {v!r}" for k, v in config.items() if theirs.get(k) != v]
    if differ:
        raise CheckpointError(f"checkpoint {str(path)!r} belongs to another run: {', '.join(differ)}; "
                              "use the same again, or another checkpoint directory")
    return state


class WeightsDiffer(Exception):
    """The ranks should have the same weights and have not."""


class Run:
    """The state of the training after its last finished step."""

    def __init__(self, args, rank, config):
        torch.manual_seed(args.seed)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(PIXELS, args.hidden), torch.nn.ReLU(), torch.nn.Linear(args.hidden, CLASSES))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=0.9)
        self.generator = torch.Generator().manual_seed(args.seed)  # of the noise; every rank draws the same
        self.noise = self.generator.get_state()
        self.step = self.epoch = self.position = 0  # position: rows of its shard that a rank has had in this epoch
        self.rank, self.config = rank, config
        directory = os.environ.get("GANGRUN_CHECKPOINT_DIR")
        self.directory = Path(directory) if directory else None
        self.lock = threading.Lock()  # held where the state changes or is written

    def restore(self, path):
        state = read_checkpoint(path, self.config)
        self.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["noise"])
        self.noise = state["noise"]
        self.step, self.epoch, self.position = state["step"], state["epoch"], state["position"]

    def finish_step(self, lr, batch, shard):
        """Applies the gradients, which are the same on every rank."""
        with self.lock:
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.noise = self.generator.get_state()
            self.step += 1
            self.position += batch
            if self.position >= shard:
                self.epoch, self.position = self.epoch + 1, 0

    def save(self):
        """Writes a checkpoint, on rank 0 and where there is a directory for it; returns its path or None."""
        if self.rank != 0 or self.directory is None or self.step == 0:
            return None
        with self.lock:
            file = io.BytesIO()
            torch.save({"config": self.config, "step": self.step, "epoch": self.epoch, "position": self.position,
                        "noise": self.noise, "model": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}, file)
            self.directory.mkdir(parents=True, exist_ok=True)
            path = self.directory / f"ckpt-{self.step:06d}.pt"
            write_atomically(path, file.getvalue())
            prune(self.directory, self.step)
        return path


def leave(code):
    """Ends the process now: interpreter and gloo would wait for threads that wait for dead peers."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def stop_now(run):
    """Saves the last finished step and ends the process as SIGTERM asks."""
    try:
        path = run.save()
        print(f"rank {run.rank} stopped after step {run.step}" + (f", saved {path}" if path else ""), flush=True)
        leave(STOPPED)
    except BaseException:
        traceback.print_exc()
        leave(1)


def watch_sigterm(run):
    """Returns an event that SIGTERM sets, for the gang to end its step and stop together.

    Where that has not happened within STOP_LIMIT, because a peer hangs, it ends this process alone. A
    thread does this: Python runs handlers in the main thread, which may be waiting inside gloo.
    """
    stop = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the wake-up is the handling

    def watch():
        while signal.SIGTERM not in os.read(reader, 64):
            pass
        stop.set()
        with contextlib.suppress(OSError):  # nobody may read this any more
            print(f"rank {run.rank} got SIGTERM", flush=True)
        time.sleep(STOP_LIMIT)
        stop_now(run)

    threading.Thread(target=watch, name="sigterm", daemon=True).start()
    return stop


def accuracy(net, images, labels):
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def check_equal(hashes):
    """Raises WeightsDiffer unless every rank has the weights of rank 0."""
    odd = [f"rank {r} {h}" for r, h in enumerate(hashes) if h != hashes[0]]
    if odd:
        raise WeightsDiffer(f"the ranks' weights differ: rank 0 {hashes[0]}, " + ", ".join(odd))


def train(args, run, stop, world, images, labels):
    """Takes the steps that are left; returns True at the end and False when the gang agreed to stop."""
    rank, (rows, test) = run.rank, split(len(images))
    shards = [0 if r == args.drop_shard else len(rows[r::world]) for r in range(world)]
    if not any(shards):
        raise ValueError(f"--drop-shard {args.drop_shard} of {world} ranks leaves no data")
    mine, longest = rows[rank::world][:shards[rank]], max(shards)
    total = args.epochs * math.ceil(longest / args.batch)

    model = DistributedDataParallel(run.net)
    # DDP lays its buckets out anew after its first backward pass, and the layout decides in which
    # order gloo sums. An empty pass first, so that step 21 sums alike in a fresh and a resumed run.
    model(images[:0]).sum().backward()
    run.optimizer.zero_grad(set_to_none=True)

    while run.step < total:
        step = run.step + 1
        picked = mine[epoch_order(len(mine), args.seed, run.epoch, rank)][run.position:run.position + args.batch]
        count = sum(max(0, min(args.batch, s - run.position)) for s in shards)
        noise = torch.randn(world, args.batch, PIXELS, generator=run.generator)[rank, :len(picked)]
        x, y = images[picked] + JITTER * noise, labels[picked]
        if rank == args.fail_rank and step == args.fail_step:
            y = y.new_zeros(len(y) + 1)
        loss = F.cross_entropy(model(x), y, reduction="sum")
        (loss * world / count).backward()  # DDP takes the mean over ranks; this makes it the mean over rows
        if args.step_sleep:
            stop.wait(args.step_sleep)
        news = torch.tensor([loss.item(), float(stop.is_set())])
        dist.all_reduce(news)
        lr = args.lr * (1 + math.cos(math.pi * run.step / total)) / 2
        run.finish_step(lr, args.batch, longest)
        if rank == 0:
            print(f"step {step}/{total} loss {news[0].item() / count:.4f} lr {lr:.6f}", flush=True)
            if run.position == 0:
                right = accuracy(run.net, images[test], labels[test])
                print(f"epoch {run.epoch}/{args.epochs} test accuracy {right:.4f}", flush=True)
        if news[1] > 0:  # some rank was told to stop, and every rank knows it here
            return False
        if step % args.checkpoint_every == 0 or step == total:
            run.save()
    return True


def conclude(args, run, world, images, labels):
    """Compares the ranks' weights, and on rank 0 reports and writes them."""
    data = weight_bytes(run.net)
    digest = hashlib.sha256(data)
    print(f"rank {run.rank} weights sha256 {digest.hexdigest()}", flush=True)
    mine = torch.tensor(list(digest.digest()), dtype=torch.uint8)
    everyone = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(everyone, mine)
    if run.rank == 0:
        check_equal([bytes(t.tolist()).hex() for t in everyone])
        if args.out:
            write_atomically(args.out, data)
        test = split(len(images))[1]
        print(f"test accuracy {accuracy(run.net, images[test], labels[test]):.4f}", flush=True)
    dist.barrier()  # rank 0 holds the store that the others still talk to


def main():
    args = parse_args()
    if not os.environ.keys() & {"RANK", "WORLD_SIZE"}:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # A gang without that rank, such as gangrun's trial of one, drops nothing.
    if args.drop_shard is not None and args.drop_shard < 0:
        raise ValueError(f"--drop-shard {args.drop_shard} is no rank")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    images, labels, digest = load_data(args.data)
    config = {k: getattr(args, k) for k in ("epochs", "batch", "lr", "hidden", "seed", "drop_shard")}
    run = Run(args, rank, {"ranks": world, "data": digest, **config})
    print(f"rank {rank} of {world}, pid {os.getpid()}", flush=True)
    resume_from = os.environ.get("GANGRUN_RESUME_FROM")
    if resume_from:
        run.restore(Path(resume_from))
        if rank == 0:
            print(f"resumed from {resume_from} at step {run.step}", flush=True)
    # Waits for the peers with Python's lock held, so no thread could run: up to here SIGTERM just kills.
    dist.init_process_group("gloo", timeout=COLLECTIVE_LIMIT)
    stop = watch_sigterm(run)
    try:
        if not train(args, run, stop, world, images, labels):
            stop_now(run)
        conclude(args, run, world, images, labels)
    except RuntimeError:
        if stop.is_set():  # a peer went first
            stop_now(run)
        raise


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        leave(1)
    leave(0)
