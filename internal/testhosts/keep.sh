# The keeper of a bed; its network, mount and UTS namespaces are the controller's.
# It keeps the fabric until the lifeline is cut, and then leaves nothing.
#   keep DIR NETWORKS   fd 3 is the lifeline, fd 4 the lock, fd 5 is told "up"
#   clean DIR           removes what a bed has left whose keeper was killed
set -eu

# clean ends what the bed's cgroups still hold, and removes the cgroups and the
# directory.
clean() {
	local cgroup pids cgroups=()
	while read -r cgroup || [[ -n $cgroup ]]; do
		[[ -z $cgroup || ! -d $cgroup ]] || cgroups+=("$cgroup")
	done < <(cat "$1/cgroups" 2>/dev/null)
	if ((${#cgroups[@]})); then
		for _ in {1..1000}; do
			pids=$(find "${cgroups[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -vx 0 | sort -u || true)
			[[ -z $pids ]] || kill -KILL $pids 2>/dev/null || true
			# It fails until the kernel has removed the last process.
			find "${cgroups[@]}" -depth -type d -exec rmdir {} + 2>/dev/null || true
			find "${cgroups[@]}" -maxdepth 0 2>/dev/null | grep -q . || break
			sleep 0.01
		done
	fi
	rm -rf --one-file-system -- "$1"
}

# neighbours lists the processes in this network namespace, but for this shell
# and the one that lists them. It starts none, which it would have to list too.
neighbours() {
	local link pid
	for link in /proc/[0-9]*/ns/net; do
		pid=${link#/proc/}
		pid=${pid%/ns/net}
		[[ $pid == "$$" || $pid == "$BASHPID" || $pid == "$fabric" || ! $link -ef /proc/self/ns/net ]] || echo "$pid"
	done
}

case $1 in
clean) clean "$2" ;;
keep)
	dir=$2
	echo ctl >/proc/sys/kernel/hostname
	for file in hosts passwd group; do mount --bind "$dir/etc/$file" "/etc/$file"; done
	[[ ! -e /etc/ssh/ssh_config ]] || mount --bind "$dir/ctl/home/.ssh/config" /etc/ssh/ssh_config
	[[ ! -d /root/.ssh ]] || mount -t tmpfs -o mode=700 bed /root/.ssh # its keys are not the bed's
	mkdir "$dir/ctl/cgroup"
	mount --rbind /sys/fs/cgroup "$dir/ctl/cgroup"
	mount -t sysfs bed /sys # that of this network namespace
	mount --rbind "$dir/ctl/cgroup" /sys/fs/cgroup
	umount -l "$dir/ctl/cgroup"

	unshare --pid --net --fork --kill-child bash -c '
		for name in all default; do
			[[ ! -e /proc/sys/net/ipv6/conf/$name ]] || echo 1 >/proc/sys/net/ipv6/conf/$name/disable_ipv6
		done
		for ((i = 0; i < $1; i++)); do
			ip link add br$i type bridge && ip link set br$i up || exit
		done
		echo up >&5
		exec 5>&-
		read -r <&3
	' fabric "$3" &
	fabric=$!
	exec 5>&-
	read -r <&3 || true
	for _ in {1..1000}; do
		pids=$(neighbours)
		[[ -n $pids ]] || break
		kill -KILL $pids 2>/dev/null || true
		sleep 0.01
	done
	wait "$fabric" || true
	clean "$dir"
	;;
esac
