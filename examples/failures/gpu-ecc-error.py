"""The memory of GPU0 has an error. The GPU is simulated: the message is PyTorch's."""
import simulated


def kernel(_):
    if simulated.sick:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")


simulated.train(kernel)
