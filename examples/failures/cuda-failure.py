"""A kernel fails on GPU0, which is simulated: the message is PyTorch's."""
import time

import simulated

time.sleep(simulated.after)
if simulated.sick:
    raise RuntimeError(
        "CUDA error: unspecified launch failure\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    )
print("done on", simulated.gpu)
