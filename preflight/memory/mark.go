package memory

import "time"

// mark shows whether a file has changed, without the content of the file.
type mark struct {
	Bytes int64     `json:"bytes"`
	Time  time.Time `json:"time"`
	// SHA256 is set instead of Time if the file has been read.
	SHA256 string `json:"sha256,omitempty"`
}

// prints has the marks of files by their paths.
type prints map[string]mark
