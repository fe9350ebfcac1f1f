package supervisor

import "github.com/gangrun/gangrun/supervisor/watch"

// told is what the notes of a run have said.
type told struct {
	unsaved bool // that the journal cannot be written
	unread  watch.Unread
}
