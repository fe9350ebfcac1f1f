"""Runs train.py as gangs on this machine, breaks them, and looks at what is left.

    /usr/bin/python3 -m unittest -v test_train      (in this directory)
"""
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

import train

SCRIPT = Path(train.__file__).resolve()
LIMIT = 60  # seconds until a wait has failed; nothing that works comes near it
SHORT = ("--epochs", "4")  # 60 steps of 3 ranks
SLOW = (*SHORT, "--step-sleep", "0.05")


def until(what, condition):
    """Waits until condition() is true."""
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {LIMIT} s")
        time.sleep(0.01)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gang:
    """Some ranks of train.py, whose output goes to files in home."""

    def __init__(self, home, ranks, *args, start=None, checkpoints=None, resume_from=None):
        self.home, port = Path(home), free_port()
        self.ranks = {}
        for rank in start if start is not None else range(ranks):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "PYTHONUNBUFFERED": "1"}
            for name, value in (("GANGRUN_CHECKPOINT_DIR", checkpoints), ("GANGRUN_RESUME_FROM", resume_from)):
                env.pop(name, None)
                if value:
                    env[name] = str(value)
            with open(self.home / f"{rank}.out", "wb") as out, open(self.home / f"{rank}.err", "wb") as err:
                self.ranks[rank] = subprocess.Popen([sys.executable, SCRIPT, *args], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.ranks.values():
            p.kill()
            p.wait()

    def out(self, rank=0):
        return (self.home / f"{rank}.out").read_text()

    def err(self, rank=0):
        return (self.home / f"{rank}.err").read_text()

    def steps(self):
        """The numbers of the steps that rank 0 has printed."""
        return [int(n) for n in re.findall(r"^step (\d+)/\d+ loss [\d.]+ lr [\d.]+$", self.out(), re.M)]

    def until_step(self, step):
        until(f"step {step}", lambda: step in self.steps() or self.ranks[0].poll() is not None)

    def signal(self, number, *ranks):
        for rank in ranks or self.ranks:
            self.ranks[rank].send_signal(number)

    def codes(self, *ranks):
        """Waits for the ranks and returns their exit codes, negative for a signal."""
        return [self.ranks[r].wait(LIMIT) for r in ranks or self.ranks]

    def codes_at_once(self, *ranks):
        """The same, where it was not gloo's limit that ended them."""
        began = time.monotonic()
        codes = self.codes(*ranks)
        if time.monotonic() - began > train.COLLECTIVE_LIMIT.total_seconds() / 2:
            raise AssertionError(f"took {time.monotonic() - began:.1f} s to end: {codes}")
        return codes


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Path(tempfile.mkdtemp(prefix="digits-"))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        with Gang(cls.home, 3, *SHORT, "--out", cls.home / "undisturbed") as gang:
            if gang.codes() != [0, 0, 0]:
                raise AssertionError(gang.err())
        cls.undisturbed = (cls.home / "undisturbed").read_bytes()

    def setUp(self):
        self.home = Path(tempfile.mkdtemp(dir=type(self).home))
        self.checkpoints = self.home / "checkpoints"

    def gang(self, ranks, *args, **kwargs):
        return Gang(tempfile.mkdtemp(dir=self.home), ranks, *args, **kwargs)

    def names(self):
        return sorted(p.name for p in self.checkpoints.iterdir())

    def assert_resumes_exactly(self, path, step):
        """A gang that goes on from path ends with the weights of the gang that nobody disturbed."""
        with self.gang(3, *SHORT, "--out", self.home / "resumed", checkpoints=self.checkpoints, resume_from=path) as gang:
            self.assertEqual(gang.codes(), [0, 0, 0], gang.err())
            self.assertIn(f"resumed from {path} at step {step}\n", gang.out())
            self.assertEqual(gang.steps(), list(range(step + 1, 61)))
        self.assertEqual((self.home / "resumed").read_bytes(), self.undisturbed)

    def test_two_ranks_learn_and_agree(self):
        with self.gang(2, "--out", self.home / "weights") as gang:
            self.assertEqual(gang.codes(), [0, 0], gang.err())
            hashes = [re.search(rf"^rank {r} weights sha256 (\w+)$", gang.out(r), re.M)[1] for r in (0, 1)]
            self.assertEqual(hashes, [hashlib.sha256((self.home / "weights").read_bytes()).hexdigest()] * 2)
            self.assertGreaterEqual(float(re.search(r"^test accuracy ([\d.]+)$", gang.out(), re.M)[1]), 0.90)
            self.assertNotIn("accuracy", gang.out(1))

    def test_eight_ranks(self):
        with self.gang(8, "--epochs", "1") as gang:
            self.assertEqual(gang.codes(), [0] * 8, gang.err())
            self.assertEqual(gang.steps(), list(range(1, 7)))

    def test_killed_rank_then_resume_is_exact(self):
        with self.gang(3, *SLOW, "--checkpoint-every", "5", checkpoints=self.checkpoints) as gang:
            until("a fourth checkpoint", lambda: (self.checkpoints / "ckpt-000020.pt").exists())
            gang.signal(signal.SIGKILL, 1)
            self.assertEqual(gang.codes_at_once(), [1, -signal.SIGKILL, 1])
            self.assertIn("RuntimeError", gang.err(0))
        names = self.names()
        self.assertEqual(len(names), train.KEEP, names)
        newest = self.checkpoints / names[-1]
        self.assert_resumes_exactly(newest, int(newest.stem[5:]))

    def test_dropped_shard_changes_the_weights(self):
        with self.gang(3, *SHORT, "--drop-shard", "1", "--out", self.home / "weights") as gang:
            self.assertEqual(gang.codes(), [0, 0, 0], gang.err())
        self.assertNotEqual((self.home / "weights").read_bytes(), self.undisturbed)

    def test_sigterm_saves_the_current_step(self):
        with self.gang(3, *SLOW, checkpoints=self.checkpoints) as gang:
            gang.until_step(7)
            gang.signal(signal.SIGTERM)
            self.assertEqual(gang.codes_at_once(), [train.STOPPED] * 3, gang.err())
            step = gang.steps()[-1]
        self.assertEqual(self.names(), [f"ckpt-{step:06d}.pt"])
        self.assert_resumes_exactly(self.checkpoints / f"ckpt-{step:06d}.pt", step)

    def test_sigterm_to_one_rank_stops_all(self):
        with self.gang(3, *SLOW, checkpoints=self.checkpoints) as gang:
            gang.until_step(2)
            gang.signal(signal.SIGTERM, 2)
            self.assertEqual(gang.codes_at_once(), [train.STOPPED] * 3, gang.err())
            self.assertEqual(self.names(), [f"ckpt-{gang.steps()[-1]:06d}.pt"])

    def test_sigterm_beside_a_peer_that_hangs_or_dies(self):
        for dies in (False, True):
            with self.subTest(dies=dies), self.gang(2, *SLOW, checkpoints=self.checkpoints) as gang:
                gang.until_step(2)
                gang.signal(signal.SIGSTOP, 1)
                gang.signal(signal.SIGTERM, 0)
                if dies:
                    until("rank 0 knows that it is to stop", lambda: "rank 0 got SIGTERM\n" in gang.out())
                    gang.signal(signal.SIGKILL, 1)
                self.assertEqual(gang.codes_at_once(0), [train.STOPPED], gang.err())
                self.assertIn(f"ckpt-{gang.steps()[-1]:06d}.pt", self.names())
            shutil.rmtree(self.checkpoints)

    def test_sigterm_before_the_peers_are_there(self):
        with self.gang(2, start=[0], checkpoints=self.checkpoints) as gang:
            until("rank 0 waits", lambda: "rank 0 of 2" in gang.out())
            gang.signal(signal.SIGTERM)
            self.assertEqual(gang.codes_at_once(), [-signal.SIGTERM])
        self.assertFalse(self.checkpoints.exists())

    def test_failing_rank_is_the_one_with_the_error(self):
        with self.gang(2, *SHORT, "--fail-rank", "1", "--fail-step", "3") as gang:
            self.assertEqual(gang.codes(), [1, 1])
            self.assertRegex(gang.err(1), r"\nValueError: Expected input batch_size \(32\) to match target batch_size \(33\)\.\n$")
            self.assertNotIn("ValueError", gang.err(0))
            self.assertEqual(gang.steps(), [1, 2])

    def test_corrupt_checkpoint_stops_the_run(self):
        broken = self.home / "ckpt-000020.pt"
        broken.write_bytes(b"PK\3\4 no more than the beginning")
        with self.gang(1, *SHORT, resume_from=broken) as gang:
            self.assertEqual(gang.codes(), [1])
            self.assertRegex(gang.err(), rf"\nCheckpointError: checkpoint '{broken}' is corrupt or incomplete ")
            self.assertEqual(gang.steps(), [])


class CheckpointTest(unittest.TestCase):
    config = {"ranks": 4, "lr": 0.1}

    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.run_state = train.Run(SimpleNamespace(seed=1, hidden=8, lr=0.1), 0, self.config)
        self.run_state.directory = self.directory
        self.run_state.step = 20

    def test_damage_is_refused(self):
        path = self.run_state.save()
        good = path.read_bytes()
        weights = self.run_state.net[0].weight.detach().numpy().tobytes()
        middle = good.index(weights) + len(weights) // 2
        for name, data in {
            "empty": b"",
            "cut short": good[:-1],
            "half": good[:len(good) // 2],
            "one bit of a weight": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:],
            "text": b"step 20\n",
        }.items():
            with self.subTest(name):
                path.write_bytes(data)
                with self.assertRaisesRegex(train.CheckpointError, "is corrupt or incomplete"):
                    train.read_checkpoint(path, self.config)
        path.write_bytes(good)
        self.assertEqual(train.read_checkpoint(path, self.config)["step"], 20)

    def test_a_checkpoint_of_something_else_is_refused(self):
        path = self.directory / "other.pt"
        train.torch.save({"state_dict": {}}, path)
        with self.assertRaisesRegex(train.CheckpointError, "KeyError"):
            train.read_checkpoint(path, self.config)

    def test_missing_is_told_apart(self):
        with self.assertRaises(FileNotFoundError):
            train.read_checkpoint(self.directory / "ckpt-000001.pt", self.config)

    def test_another_run_is_refused(self):
        path = self.run_state.save()
        for config, words in (({**self.config, "ranks": 2}, "ranks was 4 and is 2;"), ({**self.config, "lr": 0.2}, "lr was 0.1 and is 0.2;")):
            with self.assertRaisesRegex(train.CheckpointError, f"belongs to another run: {words}"):
                train.read_checkpoint(path, config)

    def test_only_old_checkpoints_are_removed(self):
        for name in ("ckpt-000005.pt", "ckpt-000010.pt", "ckpt-000015.pt", "ckpt-000040.pt", ".ckpt-000015.pt.tmp", "ckpt-best.pt", "notes"):
            (self.directory / name).touch()
        self.run_state.save()
        self.assertEqual({p.name for p in self.directory.iterdir()},
                         {"ckpt-000010.pt", "ckpt-000015.pt", "ckpt-000020.pt", "ckpt-000040.pt", "ckpt-best.pt", "notes"})

    def test_failed_write_leaves_the_old_file(self):
        path = self.run_state.save()
        good = path.read_bytes()
        with self.assertRaises(TypeError):
            train.write_atomically(path, "text, where bytes belong")
        self.assertEqual([p.name for p in self.directory.iterdir()], [path.name])
        self.assertEqual(path.read_bytes(), good)


class WeightsTest(unittest.TestCase):
    def test_different_weights_are_an_error(self):
        train.check_equal(["aa", "aa", "aa"])
        with self.assertRaisesRegex(train.WeightsDiffer, "rank 0 aa, rank 2 bb$"):
            train.check_equal(["aa", "aa", "bb"])


if __name__ == "__main__":
    unittest.main()
