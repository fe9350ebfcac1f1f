"""What testdata/mpi/train.c does, without MPI."""
import json
import os
import signal
import sys
import time

how, rank = sys.argv[1], int(os.environ["RANK"])
signalled = []
if how == "ignores":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGUSR1, lambda *_: signalled.append(1))
stop, done = os.environ["GANGRUN_STOP_FILE"], False
for step in range(100000):
    time.sleep(0.02)
    if rank == 0:
        print(f"step {step}/100000 loss {1.0 if step < 10 else 0.2}")
    if done or how == "ignores" or not (signalled or stop and os.path.exists(stop)):
        continue
    if rank == 0:
        path = os.path.join(os.environ["GANGRUN_CHECKPOINT_DIR"], f"step_{step}.json")
        with open(path + ".tmp", "w") as f:
            json.dump({"step": step}, f)
        os.rename(path + ".tmp", path)
    done = True
    if how == "quits":
        break
