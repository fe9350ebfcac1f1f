package stacks

import "golang.org/x/sys/unix"

// older has system calls that only some architectures have.
var older = map[int]string{unix.SYS_FSTATAT: "newfstatat"}
