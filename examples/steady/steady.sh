#!/bin/sh
# Prints STEPS numbered lines to each of both streams, one every SECONDS. What it
# prints depends on its rank alone, so that a lost or doubled byte can be seen.
[ $# -eq 2 ] || { echo "usage: steady.sh STEPS SECONDS" >&2; exit 2; }
i=1
while [ "$i" -le "$1" ]; do
	echo "rank $RANK of $WORLD_SIZE: step $i/$1"
	echo "rank $RANK of $WORLD_SIZE: note $i" >&2
	sleep "$2"
	i=$((i + 1))
done
