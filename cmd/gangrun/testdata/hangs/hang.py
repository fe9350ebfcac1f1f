"""hang.py MODE RANK FIFO: ranks work ten steps together; then rank RANK, or all if it is -1, hangs.

The ranks meet at rank 0 over TCP, as those of torch.distributed do."""
import ctypes
import multiprocessing
import os
import queue
import signal
import socket
import sys
import threading
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


class Group:
    """All ranks, as connections with rank 0."""

    def __init__(self):
        if rank == 0:
            server = socket.create_server(address, backlog=size)
            self.peers = [server.accept()[0] for _ in range(size - 1)]
            return
        while True:
            try:
                self.peers = [socket.create_connection(address)]
                return
            except OSError:
                time.sleep(0.05)

    def barrier(self):
        if rank == 0:
            for peer in self.peers:
                peer.recv(1, socket.MSG_WAITALL)
            for peer in self.peers:
                peer.sendall(b"x")
        else:
            self.peers[0].sendall(b"x")
            self.peers[0].recv(1, socket.MSG_WAITALL)


def feed(batches):
    for number in range(10):
        batches.put(number)
    batches.close()
    batches.join_thread()  # everything has been written
    os.kill(os.getpid(), signal.SIGKILL)


def spin():
    while True:
        pass


def next_batch(batches):
    while True:
        batches.get()


def hang():
    if mode == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif mode in ("loop", "livelock"):
        spin()
    elif mode in ("sleep", "silent"):
        time.sleep(100000)
    elif mode == "mutex":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif mode == "gil":
        while True:
            ctypes.PyDLL(None).sleep(1000)  # holds the lock of the interpreter
    elif mode == "fifo":
        open(fifo).read()
    elif mode == "missing":
        queue.Queue().get()
    elif mode == "worker":
        next_batch(batches)


if __name__ == "__main__":
    mode, who, fifo = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    batches = multiprocessing.Queue()
    if mode == "worker" and who == rank:
        multiprocessing.Process(target=feed, args=(batches,), daemon=True).start()
    group = Group()
    for step in range(10):
        time.sleep(0.06)
        group.barrier()
        print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
    if who in (rank, -1):
        hang()
    group.barrier()
