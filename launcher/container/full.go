package container

import "strings"

// Full reports whether err says that containerd had no room on its disk. containerd sends its errors as text,
// so Full looks for the texts of ENOSPC and EDQUOT in err.
func Full(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}
