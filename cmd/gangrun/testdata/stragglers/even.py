"""even.py SECONDS FILE: ranks that do the same work, and sleep while they wait for each other. In each step
a rank computes, reads a block of FILE from the disk, and meets the others."""
import mmap
import os
import socket
import sys
import time

BLOCK = 4096
seconds, file = float(sys.argv[1]), os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECT)
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
data = mmap.mmap(-1, BLOCK)

if rank == 0:
    server = socket.create_server(address)
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    while True:
        try:
            peers = [socket.create_connection(address)]
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
begin = time.monotonic()
step, go = 0, b"1"
while go == b"1":
    for _ in range(400_000):
        pass
    os.preadv(file, [data], step % 256 * BLOCK)
    if rank > 0:
        peers[0].sendall(b"1")
        go = peers[0].recv(1)
    else:
        for peer in peers:
            peer.recv(1)
        go = b"1" if time.monotonic() - begin < seconds else b"0"
        for peer in peers:
            peer.sendall(go)
        print("step", step, flush=True)
    step += 1
