# containerd.sh BINARY: starts containerd on a host, at its usual socket, and waits until it listens.
# Its images are on the host's disk, and its state is in /run.
set -eu
binary=$1 socket=/run/containerd/containerd.sock log=/var/log/containerd.log

# The hierarchies of version 1. The host's own cgroup is the root of each.
if [[ ! -e /run/cgroups ]]; then
	while IFS=: read -r _ hierarchy _; do
		[[ -n $hierarchy ]] || continue # version 2
		dir=/sys/fs/cgroup/${hierarchy#name=}
		mkdir "$dir" 2>/dev/null || { # it is part of sysfs
			mount -t tmpfs -o mode=755 bed /sys/fs/cgroup
			mkdir "$dir"
		}
		mount -t cgroup -o "$hierarchy" bed "$dir"
	done </proc/self/cgroup
	touch /run/cgroups
fi

mkdir -p /srv/containerd /run/containerd
cat >/run/containerd/config.toml <<-TOML
	version = 2
	root = "/srv/containerd"
	state = "/run/containerd"
	disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
	  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt",
	  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"]
	[grpc]
	  address = "$socket"
	[ttrpc]
	  address = "$socket.ttrpc"
TOML
rm -f "$socket"
PATH=${binary%/*}:$PATH # its shim may be beside it
setsid "$binary" -c /run/containerd/config.toml >>"$log" 2>&1 </dev/null &
echo $! >/run/containerd.pid
for _ in {1..3000}; do
	[[ ! -S $socket ]] || exit 0
	kill -0 $! 2>/dev/null || break
	sleep 0.01
done
cat "$log" >&2
exit 1
