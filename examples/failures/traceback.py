"""Raises an exception of its own kind, which says nothing about its cause."""
import time

import simulated


class TrainingFailed(Exception):
    pass


time.sleep(simulated.after)
raise TrainingFailed("the solver did not converge")
