package job

import "time"

// Checkpoint describes a checkpoint.
type Checkpoint struct {
	Path   string    `json:"path"`
	Format string    `json:"format"`
	Step   int64     `json:"step"` // the step in its name; -1 if the name has none
	Bytes  int64     `json:"bytes"`
	Time   time.Time `json:"time"` // time of the last change
}
