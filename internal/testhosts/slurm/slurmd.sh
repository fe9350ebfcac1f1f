# slurmd.sh CGROUP NAME CONF KMSG: starts slurmd on a host, with cgroups of version 1 of its own,
# in which Slurm limits memory and devices. Unless KMSG is "", it is the host's /dev/kmsg.
set -eu
cgroup=$1 name=$2 conf=$3 kmsg=$4 controllers='memory devices freezer'
mkdir -p /run/slurmd /run/slurmcg
for c in $controllers; do
	mkdir -p "/run/slurmcg/$c"
	mount -t cgroup -o "$c" slurm "/run/slurmcg/$c"
	mkdir -p "/run/slurmcg/$c/$cgroup/$name"
	echo 0 >"/run/slurmcg/$c/$cgroup/$name/cgroup.procs"
	umount "/run/slurmcg/$c"
done
# In a new cgroup namespace, the directory of this host is the root of each hierarchy.
exec unshare --cgroup --mount --propagation private -- sh -c '
	for c in $1; do mount -t cgroup -o "$c" slurm "/run/slurmcg/$c" || exit; done
	[ -z "$4" ] || mount --bind "$4" /dev/kmsg || exit
	exec slurmd -D -N "$2" -f "$3"' sh "$controllers" "$name" "$conf" "$kmsg"
