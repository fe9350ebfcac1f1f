"""CUDA cannot be initialised on GPU0, which is simulated: the message is PyTorch's."""
import time

import simulated

time.sleep(simulated.after)
if simulated.sick:
    raise RuntimeError(
        "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable "
        "CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero."
    )
print("done on", simulated.gpu)
