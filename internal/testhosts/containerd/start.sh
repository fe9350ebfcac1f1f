# start BINARY: starts containerd on a simulated host and waits until it listens.
set -eu
socket=/run/containerd/containerd.sock
if [[ ! -e /sys/fs/cgroup/cgroup.controllers ]]; then # version 1: runc needs the controllers
	# Not by mountpoint, which also sees mounts that are covered.
	mkdir -p /sys/fs/cgroup/cpuset 2>/dev/null || mount -t tmpfs -o mode=755 bed /sys/fs/cgroup
	while IFS=: read -r _ names _; do
		[[ -n $names && $names != name=* ]] || continue
		mkdir -p "/sys/fs/cgroup/$names"
		[[ -e /sys/fs/cgroup/$names/tasks ]] || mount -t cgroup -o "$names" bed "/sys/fs/cgroup/$names"
	done </proc/self/cgroup
fi
mkdir -p /srv/containerd /run/containerd
cat >/srv/containerd/config.toml <<'CONFIG'
version = 2
root = "/srv/containerd/root"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/containerd/containerd.sock"
[ttrpc]
  address = "/run/containerd/containerd.sock.ttrpc"
CONFIG
rm -f "$socket"
setsid "$1" -c /srv/containerd/config.toml >>/var/log/containerd.log 2>&1 </dev/null &
for _ in {1..2000}; do
	[[ ! -S $socket ]] || exit 0
	kill -0 $! 2>/dev/null || break
	sleep 0.01
done
cat /var/log/containerd.log >&2
exit 1
