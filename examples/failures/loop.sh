#!/bin/sh
# loop.sh COMMAND...: what many use in place of a supervisor: RANKS ranks under Open MPI's mpirun,
# and up to three tries. With RESUME=1 a retry begins from the newest file in
# GANGRUN_CHECKPOINT_DIR, without it from the beginning. The file TRIES gets a line for each try:
# when it began and ended, the exit code of mpirun, and when that newest file was written, or again
# the beginning if there is none.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for TRY in 1 2 3; do
	export TRY
	began=$(date +%s.%N)
	mpirun.openmpi --oversubscribe --bind-to none -n "${RANKS:-4}" "$@"
	code=$? ended=$(date +%s.%N) saved=$began
	if [ "${RESUME:-}" = 1 ]; then
		newest=$(ls -t "$GANGRUN_CHECKPOINT_DIR" | head -n 1)
		if [ -n "$newest" ]; then
			export GANGRUN_RESUME_FROM="$GANGRUN_CHECKPOINT_DIR/$newest"
			saved=$(date -r "$GANGRUN_RESUME_FROM" +%s.%N)
		fi
	fi
	echo "$began $ended $code $saved" >>"${TRIES:-/dev/null}"
	[ $code -ne 0 ] || exit 0
done
exit $code
