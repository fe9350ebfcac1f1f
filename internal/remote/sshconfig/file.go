package sshconfig

import (
	"errors"
	"os"

	"github.com/gangrun/gangrun/internal/safefile"
)

// maxFile limits the size of a file, in bytes.
const maxFile = 64 << 20

// ReadFile reads an ssh_config, or a file that an ssh_config names. The file must be a regular
// file or /dev/null, which counts as an empty file.
func ReadFile(path string) ([]byte, error) {
	text, err := safefile.ReadFile(path, maxFile)
	if errors.As(err, new(*safefile.KindError)) {
		null, nullErr := os.Stat(os.DevNull)
		info, infoErr := os.Stat(path)
		if nullErr == nil && infoErr == nil && os.SameFile(null, info) {
			return nil, nil
		}
	}
	return text, err
}
