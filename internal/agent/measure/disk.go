package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
)

// disk writes files until diskTime is over. The first file has diskLeast bytes. Each file is diskGrowth times as long
// as the one before, but has at most diskMost bytes.
const (
	diskLeast  = 256 << 10
	diskMost   = 8 << 20
	diskGrowth = 4
	diskTime   = 500 * time.Millisecond
	diskPart   = 20 // a file may take 1/diskPart of the free space
)

// disk measures how fast files in a directory are written and synced. It removes the files. If dir is empty,
// it measures nothing.
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
	speed.Model = fileSystem(int64(vfs.Type))
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
		// The next file takes about diskGrowth times as long.
		if time.Since(begun)+diskGrowth*took > diskTime || ctx.Err() != nil {
			break
		}
	}
	return []job.Speed{speed}
}

// fileSystem returns the name of a type of file systems from statfs(2). It returns the number of a type that
// it does not know.
func fileSystem(magic int64) string {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse", unix.CEPH_SUPER_MAGIC: "ceph",
		0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x19830326: "beegfs",
	}
	if name, ok := names[magic]; ok {
		return name
	}
	return fmt.Sprintf("%#x", uint32(magic))
}

// write writes and syncs a file of that size in dir, and then removes it. took is the time of writing and
// syncing.
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
