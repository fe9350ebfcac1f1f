package testhosts

import "context"

// Fill uses up all space in a directory of the host. The directory must be one that is in
// memory: /tmp, /var/tmp, /dev/shm, /run, /home or /root. Until Drain or the next boot, writing
// there fails.
func (h *Host) Fill(dir string) error {
	_, err := h.Exec(context.Background(), "bash", "-c", `set -e
		used=$(($(stat -f -c '(%b-%f)*%S' "$0") + 65536))
		mount -o "remount,size=$used" "$0"
		cat /dev/zero >"$0/.full" 2>/dev/null && exit 1
		[[ $(stat -f -c %a "$0") == 0 ]]`, dir)
	return err
}

// Drain undoes Fill.
func (h *Host) Drain(dir string) error {
	_, err := h.Exec(context.Background(), "bash", "-c", `rm "$0/.full" && mount -o remount,size=50% "$0"`, dir)
	return err
}

// Remount changes mount options of a directory that Fill accepts, until the next boot: "ro" or
// "rw", "noexec" or "exec".
func (h *Host) Remount(dir, options string) error {
	_, err := h.Exec(context.Background(), "mount", "-o", "remount,"+options, dir)
	return err
}
