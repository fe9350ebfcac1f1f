"""Lacks a bracket."""
import simulated

print("step 1", (simulated.after
print("step 2")
