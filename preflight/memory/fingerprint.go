package memory

import "time"

// mark is what tells a file from a changed one without reading it.
type mark struct {
	Bytes int64     `json:"bytes"`
	Time  time.Time `json:"time"`
}

// prints are the marks of files, by their paths.
type prints map[string]mark
