package container

import "strings"

// Full reports whether containerd had no room on its disk. The error has crossed a connection, so
// it is only text: the C library's words for ENOSPC and EDQUOT.
func Full(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}
