"""A link fails under MPI. It is simulated: the message is UCX's, which then ends the rank."""
import os
import sys

import simulated
from mpi4py import MPI


def fault(_):
    MPI.COMM_WORLD.Barrier()
    if simulated.first and simulated.rank == 0:
        print(f"[1700000000.123456] [h1:{os.getpid()}:0] ib_mlx5_log.c:171 UCX  ERROR Transport retry count exceeded on "
              "mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)", file=sys.stderr, flush=True)
        os.abort()
    MPI.COMM_WORLD.Barrier()


simulated.train(fault)
