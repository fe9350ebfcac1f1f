package ssh

import (
	"errors"
	"os"

	"github.com/gangrun/gangrun/internal/safefile"
)

// maxSetting bounds a file of settings for SSH, in bytes.
const maxSetting = 64 << 20

// readSetting reads a file of settings for SSH. It is a regular file, or /dev/null, which
// is there for none.
func readSetting(path string) ([]byte, error) {
	text, err := safefile.ReadFile(path, maxSetting)
	if errors.As(err, new(*safefile.KindError)) {
		null, nullErr := os.Stat(os.DevNull)
		info, infoErr := os.Stat(path)
		if nullErr == nil && infoErr == nil && os.SameFile(null, info) {
			return nil, nil
		}
	}
	return text, err
}
