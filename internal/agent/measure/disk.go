package measure

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
)

// A disk is measured with files that grow by diskGrowth, up to diskMost bytes, for as long as
// diskTime is not over.
const (
	diskLeast  = 256 << 10
	diskMost   = 8 << 20
	diskGrowth = 4
	diskTime   = 500 * time.Millisecond
	diskPart   = 20 // a file takes at most this part of the free space
)

// disk measures how fast files in a directory are written and synced. It removes them. It
// returns nothing if dir is empty.
func disk(ctx context.Context, dir string) []job.Speed {
	if dir == "" {
		return nil
	}
	speed := job.Speed{Of: dir}
	var vfs unix.Statfs_t
	if err := unix.Statfs(dir, &vfs); err != nil {
		speed.Error = pathfact.Reason(err)
		return []job.Speed{speed}
	}
	free := int64(vfs.Bavail) * vfs.Bsize
	if free < diskPart*diskLeast {
		speed.Error = "too little space is free"
		return []job.Speed{speed}
	}
	begun := time.Now()
	for size := int64(diskLeast); size <= min(diskMost, free/diskPart); size *= diskGrowth {
		took, err := write(dir, size)
		if err != nil {
			speed.Error = pathfact.Reason(err)
			break
		}
		speed.Value = max(speed.Value, float64(size)/took.Seconds())
		// The next file takes diskGrowth times as long.
		if time.Since(begun)+diskGrowth*took > diskTime || ctx.Err() != nil {
			break
		}
	}
	return []job.Speed{speed}
}

// write writes and syncs a file of that size, and removes it. took leaves the removal out.
func write(dir string, size int64) (took time.Duration, err error) {
	data := bytes.Repeat([]byte("gangrun "), diskLeast/8)
	file, err := os.CreateTemp(dir, ".gangrun-*.tmp")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	begun := time.Now()
	for range size / diskLeast {
		if _, err = file.Write(data); err != nil {
			return 0, errors.Join(err, file.Close())
		}
	}
	err = errors.Join(file.Sync(), file.Close())
	return max(time.Since(begun), time.Nanosecond), err
}
