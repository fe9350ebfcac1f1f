"""A library that the program has loaded calls abort()."""
import ctypes
import time

import simulated

time.sleep(simulated.after)
ctypes.CDLL(None).abort()
