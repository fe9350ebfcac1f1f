"""Reads the labels of its data set, which nobody has copied to where they should be."""
import csv
import sys
import time

import simulated

time.sleep(simulated.after)
with open(sys.argv[1]) as file:
    print(len(list(csv.reader(file))), "labels")
