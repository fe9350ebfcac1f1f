"""train.py SECONDS: trains a small network without libraries, and prints how many steps it has done."""
import math
import os
import random
import sys
import time

random.seed(1)
size = 16
weights = [[random.gauss(0, 0.1) for _ in range(size)] for _ in range(size)]
end = time.monotonic() + float(sys.argv[1])
rounds, told = 0, 0
while time.monotonic() < end:
    x = [random.random() for _ in range(size)]
    y = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in weights]
    loss = sum((a - b) ** 2 for a, b in zip(x, y))
    for row, a, b in zip(weights, x, y):
        slope = 2 * (b - a) * (1 - b * b)
        for i in range(size):
            row[i] -= 0.01 * slope * x[i]
    rounds += 1
    if rounds % 1000 == 0 and os.environ.get("RANK") == "0":
        print(f"step {rounds} loss {loss:.4f}", flush=True)
if os.environ.get("RANK") == "0":
    print("rounds", rounds, flush=True)
