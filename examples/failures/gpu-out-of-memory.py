"""A long batch does not fit into the memory of the GPU, which is simulated: the message is PyTorch's."""
import simulated


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


def batch(_):
    raise OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.33 GiB is free. "
        "Including non-PyTorch memory, this process has 14.44 GiB memory in use. Of the allocated memory 13.90 GiB is allocated "
        "by PyTorch, and 171.44 MiB is reserved by PyTorch but unallocated."
    )


simulated.train(batch)
