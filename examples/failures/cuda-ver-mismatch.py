"""The driver is too old. It is simulated: the message is PyTorch's."""
import time

import simulated

time.sleep(simulated.after)
raise RuntimeError(
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and "
    "installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: "
    "https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver."
)
