"""Reads its data into memory; the job may have 256 MiB, as where the batch system limits it."""
import resource
import time

import simulated

resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
data = []
while True:
    data.append(bytearray(16 << 20))
    time.sleep(simulated.after / 16)
