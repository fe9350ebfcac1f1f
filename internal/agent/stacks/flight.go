package stacks

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
)

// Limits of dumps of PyTorch's flight recorder.
const (
	// flightLimit limits the wait for a dump. PyTorch reads its FIFO once a second, and may need two tries.
	flightLimit = 8 * time.Second
	flightEvery = 50 * time.Millisecond
	// maxDump limits the size of a dump that is read, in bytes. A dump of 2,000 calls with their stacks has about 4 MB.
	maxDump = 32 << 20
)

// Flight has the paths of the files by which an agent gets a dump from a rank's flight recorder. If the rank
// has no flight recorder, the files do not exist.
type Flight struct {
	Pipe string // the FIFO that PyTorch makes; a byte that is written to it asks for a dump; "" means there is none
	Dump string // the file to which PyTorch writes the dump
}

// version distinguishes two states of a file.
type version struct {
	inode    uint64
	size     int64
	modified unix.Timespec
}

func versionOf(path string) (v version) {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) == nil {
		v = version{stat.Ino, stat.Size, stat.Mtim}
	}
	return v
}

// record makes the flight recorder of a rank write a dump, and reads the dump. It returns nil if the rank has
// no flight recorder, or if the dump does not come in time.
func (c *Collector) record(ctx context.Context, t Target) *job.FlightRecord {
	if t.Flight.Pipe == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flightLimit)
	defer cancel()
	type asked struct {
		before version // the version of the dump before the request
		ok     bool
	}
	a, _ := limited(ctx, &c.dumps, t.PID, func() asked { return asked{versionOf(t.Flight.Dump), signal(t.Flight.Pipe)} })
	if !a.ok {
		return nil
	}
	every := time.NewTicker(flightEvery)
	defer every.Stop()
	for last := a.before; ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		type dump struct {
			version version
			record  *job.FlightRecord
		}
		d, ok := limited(ctx, &c.dumps, t.PID, func() dump {
			v := versionOf(t.Flight.Dump)
			if v == last || v.size == 0 {
				return dump{version: last}
			}
			c.parsing.Lock()
			defer c.parsing.Unlock()
			return dump{v, ReadDump(t.Rank, t.Flight.Dump)}
		})
		if !ok || d.record != nil {
			return d.record
		}
		last = d.version // the dump is not complete yet
	}
}

// signal writes to a FIFO that a process has open for reading. It never waits.
func signal(path string) bool {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	n, err := unix.Write(fd, []byte{'1'})
	return n == 1 && err == nil
}

// ReadDump reads the dump of a rank's flight recorder. It returns nil if the file is missing or not complete.
func ReadDump(rank int, path string) *job.FlightRecord {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDump {
		return nil
	}
	r, err := flightrecord.Parse(rank, file)
	if err != nil {
		return nil
	}
	return &r
}
