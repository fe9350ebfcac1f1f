"""Sends 100 numbers to a rank that has room for 10."""
import time

import simulated
from mpi4py import MPI

world = MPI.COMM_WORLD
time.sleep(simulated.after)
request = world.Isend(bytearray(800), dest=(world.rank + 1) % world.size)
world.Recv(bytearray(80), source=(world.rank - 1) % world.size)
request.wait()
