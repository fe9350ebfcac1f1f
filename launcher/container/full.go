package container

import "strings"

// Full reports whether containerd had no room on its disk. containerd sends its errors as text,
// so Full looks in err for the texts of ENOSPC and EDQUOT.
func Full(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}
