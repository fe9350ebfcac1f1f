#!/bin/sh
# Prints STEPS numbered lines to each of both streams, one every SECONDS. What it
# prints depends on its rank alone, so that a lost or doubled byte can be seen. With a
# FILE, the last step waits until that is there.
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: steady.sh STEPS SECONDS [FILE]" >&2; exit 2; }
i=1
while [ "$i" -le "$1" ]; do
	while [ "$i" -eq "$1" ] && [ $# -eq 3 ] && [ ! -e "$3" ]; do sleep 0.1; done
	echo "rank $RANK of $WORLD_SIZE: step $i/$1"
	echo "rank $RANK of $WORLD_SIZE: note $i" >&2
	sleep "$2"
	i=$((i + 1))
done
