package journal

import (
	"context"

	"github.com/gangrun/gangrun/internal/job"
)

// FollowPolling is like Follow, but does not use inotify.
func FollowPolling(ctx context.Context, path string, offset int64, emit func(job.Event)) (int64, error) {
	return follow(ctx, path, offset, emit, nil)
}
