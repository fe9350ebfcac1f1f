#!/bin/sh
# loop.sh COMMAND...: what many use in place of a supervisor: RANKS ranks under Open MPI's mpirun,
# and up to three tries. TRIES is a file that gets a line for each try: when it began and ended, in
# seconds, and the exit code of mpirun. With RESUME=1 a retry begins from the newest file in
# GANGRUN_CHECKPOINT_DIR, without it from the beginning.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for TRY in 1 2 3; do
	export TRY
	if [ "${RESUME:-}" = 1 ] && [ "$TRY" -gt 1 ]; then
		newest=$(ls -t "$GANGRUN_CHECKPOINT_DIR" | head -n 1)
		[ -z "$newest" ] || export GANGRUN_RESUME_FROM="$GANGRUN_CHECKPOINT_DIR/$newest"
	fi
	began=$(date +%s.%N)
	mpirun.openmpi --oversubscribe --bind-to none -n "${RANKS:-4}" "$@"
	code=$?
	echo "$began $(date +%s.%N) $code" >>"${TRIES:-/dev/null}"
	[ $code -ne 0 ] || exit 0
done
exit $code
