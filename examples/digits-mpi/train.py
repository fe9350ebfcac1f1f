#!/usr/bin/env python3
"""Data-parallel training on the UCI handwritten digits over MPI, made to be stopped and resumed.

The same training as ../digits/train.py, with numpy in PyTorch's place and
mpi4py in gloo's: gradients are summed with one Allreduce a step. Start it as an
MPI program; alone it runs as one rank. It reads two variables of the
environment: GANGRUN_CHECKPOINT_DIR, where rank 0 keeps checkpoints, and
GANGRUN_RESUME_FROM, the checkpoint to go on from. The final weights of a run
that was killed and resumed are the same, byte for byte, as those of a run of
as many ranks that was left alone.
"""
import argparse
import contextlib
import hashlib
import io
import json
import math
import os
import re
import signal
import sys
import threading
import time
import traceback
import zipfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the ranks share the cores; numpy reads it when it is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mpi4py
import numpy

mpi4py.rc.initialize = False  # main does, once the arguments are known to be good
mpi4py.rc.finalize = False
from mpi4py import MPI

PIXELS, CLASSES, BRIGHTEST = 64, 10, 16
JITTER = 0.1  # standard deviation of the noise on each pixel, of a range of 1
MOMENTUM = 0.9
KEEP = 3  # checkpoints kept
STOP_LIMIT = 1.0  # seconds from SIGTERM in which the gang may end its step together
STOPPED = 128 + signal.SIGTERM


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read, or that another kind of run wrote."""


def parse_args(argv=None):
    p = argparse.ArgumentParser(description="Train a digit classifier with numpy, gradients averaged over MPI.")
    p.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent / "digits" / "digits.csv.gz",
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
    if args.seed < 0:
        p.error(f"--seed must be at least 0, not {args.seed}")
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
    return images / BRIGHTEST, labels.astype(numpy.int64), hashlib.sha256(path.read_bytes()).hexdigest()


def split(rows):
    """Returns the rows to train on and, a fixed fifth, those to test on."""
    order = numpy.random.default_rng(0).permutation(rows)
    train = rows - rows // 5
    return order[:train], order[train:]


def epoch_order(rows, seed, epoch, rank):
    """Returns the order of a rank's rows in an epoch: a function of nothing else, so that a resumed run has the same."""
    return numpy.random.default_rng([seed, epoch, rank]).permutation(rows)


class Net:
    """64 pixels, a hidden layer with ReLU, 10 classes. All weights lie in one vector, and each has a name in it."""

    def __init__(self, hidden, generator):
        self.shapes = {"weight1": (PIXELS, hidden), "bias1": (hidden,), "weight2": (hidden, CLASSES), "bias2": (CLASSES,)}
        self.weights = numpy.concatenate([
            generator.uniform(-1, 1, math.prod(shape)) / math.sqrt(fan_in)
            for shape, fan_in in zip(self.shapes.values(), (PIXELS, PIXELS, hidden, hidden))])

    def named(self, vector):
        """Returns views of the parts of a vector as long as the weights, by their names."""
        parts, at = {}, 0
        for name, shape in self.shapes.items():
            parts[name] = vector[at:at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        return parts

    def forward(self, x):
        """Returns the hidden layer and the scores of each class."""
        w = self.named(self.weights)
        hidden = numpy.maximum(x @ w["weight1"] + w["bias1"], 0)
        return hidden, hidden @ w["weight2"] + w["bias2"]

    def backward(self, x, y, gradient):
        """Writes the gradient of the summed cross entropy to a vector, and returns that sum."""
        hidden, scores = self.forward(x)
        scores = scores - scores.max(axis=1, keepdims=True)
        logs = scores - numpy.log(numpy.exp(scores).sum(axis=1, keepdims=True))
        truth = numpy.eye(CLASSES)[y]
        loss = -(logs * truth).sum()
        w, g = self.named(self.weights), self.named(gradient)
        error = numpy.exp(logs) - truth
        g["weight2"][:], g["bias2"][:] = hidden.T @ error, error.sum(axis=0)
        error = (error @ w["weight2"].T) * (hidden > 0)
        g["weight1"][:], g["bias1"][:] = x.T @ error, error.sum(axis=0)
        return loss

    def accuracy(self, images, labels):
        return (self.forward(images)[1].argmax(axis=1) == labels).mean()

    def bytes(self):
        """Returns the weights as bytes that are equal where the weights are."""
        return b"".join(f"{name} {part.dtype} {list(part.shape)}\n".encode() + part.tobytes()
                        for name, part in sorted(self.named(self.weights).items()))


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
    steps = {int(p.stem[5:]): p for p in directory.glob("ckpt-*.npz") if re.fullmatch(r"ckpt-\d{6,}\.npz", p.name)}
    found = [steps[n] for n in sorted(steps) if n <= newest]
    for path in found[:-KEEP] + list(directory.glob(".ckpt-*.npz.tmp")):
        path.unlink(missing_ok=True)


def read_checkpoint(path, config, size):
    """Returns what Run.save wrote to path; refuses what is damaged or belongs to a run with another config."""
    try:
        with zipfile.ZipFile(path) as z:  # numpy.load itself leaves what is not asked for unread
            damaged = z.testzip()
        if damaged:
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        with numpy.load(path, allow_pickle=False) as arrays:
            state = json.loads(str(arrays["state"]))
            weights, momentum = arrays["weights"], arrays["momentum"]
        missing = {"config", "step", "epoch", "position", "noise"} - state.keys()
        if missing:
            raise KeyError(", ".join(sorted(missing)))
        theirs = state["config"]
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as e:  # zipfile, numpy and json raise a dozen kinds
        why = f"{type(e).__name__}: {e}"
        raise CheckpointError(f"checkpoint {str(path)!r} is corrupt or incomplete ({why}); resume from an older one") from e
    differ = [f"{k} was {theirs.get(k)!r} and is {v!r}" for k, v in config.items() if theirs.get(k) != v]
    if differ:
        raise CheckpointError(f"checkpoint {str(path)!r} belongs to another run: {', '.join(differ)}; "
                              "use the same again, or another checkpoint directory")
    if weights.shape != (size,) or momentum.shape != (size,):
        raise CheckpointError(f"checkpoint {str(path)!r} holds {weights.shape} weights and {momentum.shape} of momentum, want {size} each; resume from an older one")
    return state, weights, momentum


class WeightsDiffer(Exception):
    """The ranks should have the same weights and have not."""


class Run:
    """The state of the training after its last finished step."""

    def __init__(self, args, rank, config):
        self.net = Net(args.hidden, numpy.random.default_rng(args.seed))
        self.momentum = numpy.zeros_like(self.net.weights)
        self.generator = numpy.random.default_rng(args.seed)  # of the noise; every rank draws the same
        self.noise = self.generator.bit_generator.state
        self.step = self.epoch = self.position = 0  # position: rows of its shard that a rank has had in this epoch
        self.rank, self.config = rank, config
        directory = os.environ.get("GANGRUN_CHECKPOINT_DIR")
        self.directory = Path(directory) if directory else None
        self.lock = threading.Lock()  # held where the state changes or is written

    def restore(self, path):
        state, self.net.weights, self.momentum = read_checkpoint(path, self.config, len(self.net.weights))
        self.noise = self.generator.bit_generator.state = state["noise"]
        self.step, self.epoch, self.position = state["step"], state["epoch"], state["position"]

    def finish_step(self, gradient, lr, batch, shard):
        """Applies the gradient, which is the same on every rank."""
        with self.lock:
            self.momentum = MOMENTUM * self.momentum + gradient
            self.net.weights = self.net.weights - lr * self.momentum
            self.noise = self.generator.bit_generator.state
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
            state = {"config": self.config, "step": self.step, "epoch": self.epoch, "position": self.position, "noise": self.noise}
            numpy.savez(file, state=json.dumps(state), weights=self.net.weights, momentum=self.momentum)
            self.directory.mkdir(parents=True, exist_ok=True)
            path = self.directory / f"ckpt-{self.step:06d}.npz"
            write_atomically(path, file.getvalue())
            prune(self.directory, self.step)
        return path


def leave(code):
    """Ends the process now: interpreter and MPI would wait for threads that wait for dead peers."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def save_stopped(run):
    """Saves the last finished step; an error ends the process."""
    try:
        path = run.save()
        print(f"rank {run.rank} stopped after step {run.step}" + (f", saved {path}" if path else ""), flush=True)
    except BaseException:
        traceback.print_exc()
        leave(1)


def stop_now(run):
    """Saves the last finished step and ends the process as SIGTERM asks."""
    save_stopped(run)
    leave(STOPPED)


def stop_together(run, comm):
    """The same, but nobody ends before rank 0 has saved: a launcher may end the rest when one has."""
    limit = threading.Timer(STOP_LIMIT, leave, [STOPPED])  # a peer may be dead
    limit.daemon = True
    limit.start()
    if run.rank == 0:
        save_stopped(run)
    comm.Barrier()
    if run.rank != 0:
        save_stopped(run)
    MPI.Finalize()
    leave(STOPPED)


def watch_sigterm(run):
    """Returns an event that SIGTERM sets, for the gang to end its step and stop together.

    Where that has not happened within STOP_LIMIT, because a peer hangs, it ends this process alone. A
    thread does this: Python runs handlers in the main thread, which may be waiting inside MPI.
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


def check_equal(hashes):
    """Raises WeightsDiffer unless every rank has the weights of rank 0."""
    odd = [f"rank {r} {h}" for r, h in enumerate(hashes) if h != hashes[0]]
    if odd:
        raise WeightsDiffer(f"the ranks' weights differ: rank 0 {hashes[0]}, " + ", ".join(odd))


def train(args, run, stop, comm, images, labels):
    """Takes the steps that are left; returns True at the end and False when the gang agreed to stop."""
    rank, world, (rows, test) = comm.rank, comm.size, split(len(images))
    shards = [0 if r == args.drop_shard else len(rows[r::world]) for r in range(world)]
    if not any(shards):
        raise ValueError(f"--drop-shard {args.drop_shard} of {world} ranks leaves no data")
    mine, longest = rows[rank::world][:shards[rank]], max(shards)
    total = args.epochs * math.ceil(longest / args.batch)
    weights = len(run.net.weights)
    told, heard = numpy.zeros(weights + 2), numpy.empty(weights + 2)  # a gradient, a loss, and whether to stop

    while run.step < total:
        step = run.step + 1
        picked = mine[epoch_order(len(mine), args.seed, run.epoch, rank)][run.position:run.position + args.batch]
        count = sum(max(0, min(args.batch, s - run.position)) for s in shards)
        noise = run.generator.standard_normal((world, args.batch, PIXELS))[rank, :len(picked)]
        x, y = images[picked] + JITTER * noise, labels[picked]
        if rank == args.fail_rank and step == args.fail_step:
            y = numpy.zeros(len(y) + 1, dtype=y.dtype)
        told[weights] = run.net.backward(x, y, told[:weights])
        if args.step_sleep:
            stop.wait(args.step_sleep)
        told[weights + 1] = stop.is_set()
        comm.Allreduce(told, heard)
        lr = args.lr * (1 + math.cos(math.pi * run.step / total)) / 2
        run.finish_step(heard[:weights] / count, lr, args.batch, longest)
        if rank == 0:
            print(f"step {step}/{total} loss {heard[weights] / count:.4f} lr {lr:.6f}", flush=True)
            if run.position == 0:
                print(f"epoch {run.epoch}/{args.epochs} test accuracy {run.net.accuracy(images[test], labels[test]):.4f}", flush=True)
        if heard[weights + 1] > 0:  # some rank was told to stop, and every rank knows it here
            return False
        if step % args.checkpoint_every == 0 or step == total:
            run.save()
    return True


def conclude(args, run, comm, images, labels):
    """Compares the ranks' weights, and on rank 0 reports and writes them."""
    data = run.net.bytes()
    digest = hashlib.sha256(data).hexdigest()
    print(f"rank {run.rank} weights sha256 {digest}", flush=True)
    everyone = comm.gather(digest)
    if run.rank == 0:
        check_equal(everyone)
        if args.out:
            write_atomically(args.out, data)
        test = split(len(images))[1]
        print(f"test accuracy {run.net.accuracy(images[test], labels[test]):.4f}", flush=True)


def main():
    args = parse_args()
    # A gang without that rank, such as gangrun's trial of one, drops nothing.
    if args.drop_shard is not None and args.drop_shard < 0:
        raise ValueError(f"--drop-shard {args.drop_shard} is no rank")
    images, labels, digest = load_data(args.data)
    MPI.Init()
    comm = MPI.COMM_WORLD
    config = {k: getattr(args, k) for k in ("epochs", "batch", "lr", "hidden", "seed", "drop_shard")}
    run = Run(args, comm.rank, {"ranks": comm.size, "data": digest, **config})
    print(f"rank {comm.rank} of {comm.size}, pid {os.getpid()}", flush=True)
    resume_from = os.environ.get("GANGRUN_RESUME_FROM")
    if resume_from:
        run.restore(Path(resume_from))
        if comm.rank == 0:
            print(f"resumed from {resume_from} at step {run.step}", flush=True)
    stop = watch_sigterm(run)
    if not train(args, run, stop, comm, images, labels):
        stop_together(run, comm)
    conclude(args, run, comm, images, labels)
    MPI.Finalize()


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        leave(1)
    leave(0)
