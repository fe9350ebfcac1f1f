"""The batch system takes the host for another job. It is simulated: the message is Slurm's, and the
signal that follows comes from the program itself."""
import os
import signal
import sys

import simulated


def preempt(_):
    if simulated.first and simulated.rank == 0:
        print("slurmstepd: error: *** STEP 4711.0 ON h1 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***",
              file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)


simulated.train(preempt)
