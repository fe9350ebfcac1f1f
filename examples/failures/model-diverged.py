"""Trains with a step so large that the loss overflows."""
import math
import time

import simulated

weight = 1.0
while True:
    time.sleep(simulated.after)
    weight *= -1e200
    loss = weight * weight if abs(weight) < 1e150 else math.inf - math.inf
    if not math.isfinite(loss):
        raise FloatingPointError(f"loss is {loss}, stopping training")
