"""A layer of 128 inputs gets images of 784 pixels."""
import time

import numpy
import simulated

images, weights = numpy.zeros((32, 784)), numpy.zeros((128, 10))
time.sleep(simulated.after)
print("logits", images @ weights)
