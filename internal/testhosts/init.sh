# PID 1 of a host, in namespaces of its own: lays out the host's files, starts
# sshd, says "up" on fd 3, and reaps orphans.
#   NAME DIR SSHD CGROUP2 HOME DOCKER0 CONTAINERD
# CGROUP2 is where the version 2 hierarchy is mounted, "" for nowhere. HOME is
# "shared" or "own"; DOCKER0 is the address of a bridge that leads nowhere, or "".
# CONTAINERD is the program, or "" where none runs.
set -eu
name=$1 dir=$2 sshd=$3 cgroup2=$4 home=$5 docker0=$6 containerd=$7

bind() { mount --bind "/run/bed/$1" "$2"; }

echo "$name" >/proc/sys/kernel/hostname
mount -t tmpfs -o mode=755 bed /run
mkdir /run/bed /run/sshd /run/lock /run/user
mount --bind "$dir" /run/bed # seen while /var/tmp is covered
for spec in 1777:/tmp 1777:/var/tmp 1777:/dev/shm 755:/home 700:/root; do
	mount -t tmpfs -o "mode=${spec%%:*}" bed "${spec#*:}"
done
[[ $home == own ]] || bind home /root
mkdir -m 700 /home/alice /home/bob
chown 7001:7001 /home/alice
chown 7002:7002 /home/bob
mkdir -p "$dir/shared"
bind shared "$dir/shared"
bind "$name/srv" /srv
bind "$name/log" /var/log
bind "$name/ssh" /etc/ssh
for file in hosts passwd group shadow; do bind "etc/$file" "/etc/$file"; done
[[ -z $containerd ]] || script=$(</run/bed/containerd.sh)
for file in hostname machine-id; do
	[[ ! -e /etc/$file ]] || bind "$name/$file" "/etc/$file"
done
umount /run/bed # the controller's keys are in it
rmdir /run/bed

mount -t proc bed /proc
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
mount -t sysfs bed /sys
if [[ -n $cgroup2 ]]; then
	if [[ $cgroup2 != /sys/fs/cgroup ]]; then
		mount -t tmpfs -o mode=755 bed /sys/fs/cgroup
		mkdir -p "$cgroup2"
	fi
	mount -t cgroup2 bed "$cgroup2"
fi
if [[ -n $docker0 ]]; then
	ip link add docker0 type bridge
	ip addr add "$docker0" dev docker0
	ip link set docker0 up
fi

"$sshd" -E /var/log/sshd.log 3>&-
for _ in {1..6000}; do
	[[ ! -s /run/sshd.pid ]] || break
	sleep 0.01
done
[[ -s /run/sshd.pid ]] || { cat /var/log/sshd.log >&2; exit 1; }
[[ -z $containerd ]] || bash -c "$script" containerd.sh "$containerd" 3>&-
echo up >&3
exec 3>&-
while :; do
	sleep infinity &
	wait $! || true # and whatever else ends is reaped meanwhile
done
