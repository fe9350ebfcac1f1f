"""Imports a module that is not installed."""
import time

import simulated

time.sleep(simulated.after)
import gangrun_example_of_a_missing_module  # noqa: E402
