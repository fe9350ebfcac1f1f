"""MPI loses the shared memory of another rank. It is simulated: the messages are those of UCX and
Open MPI, which then ends the rank."""
import os
import sys

import simulated
from mpi4py import MPI


def fault(_):
    MPI.COMM_WORLD.Barrier()
    if simulated.first and simulated.rank == 0:
        print(f"[1700000000.123456] [h1:{os.getpid()}:0]        mm_posix.c:245  UCX  ERROR open(file_name=/proc/77/fd/31 "
              "flags=0x0) failed: No such file or directory\n"
              f"[h1:{os.getpid()}] pml_ucx.c:419  Error: ucp_ep_create(proc=1) failed: Shared memory error", file=sys.stderr, flush=True)
        os.abort()
    MPI.COMM_WORLD.Barrier()


simulated.train(fault)
