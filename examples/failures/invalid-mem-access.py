"""A library that the program has loaded reads through a null pointer."""
import ctypes
import time

import simulated

time.sleep(simulated.after)
ctypes.CDLL(None).strlen(None)
