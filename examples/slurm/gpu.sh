#!/bin/bash
#SBATCH --job-name=gpu --nodes=2 --gres=gpu:2 --time=2:00:00 --requeue --open-mode=append
gangrun run --resume --exit-code verdict --timeout 110m job.yaml
code=$?
[[ $code != 75 || ${SLURM_RESTART_COUNT:-0} -ge 5 ]] || scontrol requeue "$SLURM_JOB_ID"
exit $code
