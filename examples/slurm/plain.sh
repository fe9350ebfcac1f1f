#!/bin/bash
#SBATCH --job-name=plain --nodes=2 --ntasks-per-node=2 --time=0:10:00
gangrun run -n 4 --mpi none -- python3 train.py 20 0.1
