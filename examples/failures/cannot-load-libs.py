"""Loads a shared library that is not installed."""
import ctypes
import time

import simulated

time.sleep(simulated.after)
ctypes.CDLL("libgangrun_example_of_a_missing_library.so.9")
