#!/bin/bash
#SBATCH --job-name=array --array=1-2 --nodes=1 --ntasks=2 --time=0:10:00
gangrun run -n 2 --mpi none --name "seed-$SLURM_ARRAY_TASK_ID" --checkpoint-dir "checkpoints/$SLURM_ARRAY_TASK_ID" -- \
	python3 train.py 20 0.1 "$SLURM_ARRAY_TASK_ID"
