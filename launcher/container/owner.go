package container

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// groupOf returns the name of the group that may open a socket, empty if only root may.
func groupOf(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid == 0 || info.Mode().Perm()&0o060 != 0o060 {
		return ""
	}
	id := strconv.Itoa(int(stat.Gid))
	if group, err := user.LookupGroupId(id); err == nil {
		return group.Name
	}
	return id
}

// ownerOf returns the owner of a file.
func ownerOf(info os.FileInfo) (User, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return User{}, false
	}
	return User{UID: stat.Uid, GID: stat.Gid}, true
}
