package progress

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/curve"
)

// The environment variables that tell a rank how to give heartbeats: FDVariable has the number of a descriptor
// to which it can write, and HeartbeatVariable has the path of a file that it can touch.
const (
	FDVariable        = "GANGRUN_PROGRESS_FD"
	HeartbeatVariable = "GANGRUN_HEARTBEAT"
)

const (
	// pollBytes limits how many bytes one Poll reads. It reads the last bytes that the rank has written.
	pollBytes = 64 << 10
	// punchBytes limits how many bytes that were read stay in memory.
	punchBytes = 1 << 20
)

// Beats receives the heartbeats of the program of one rank. A heartbeat is a line that the program writes to a
// file in memory, or a touch of another file. The program inherits the descriptor of the file in memory.
//
// The file in memory is not a pipe. So a write never waits and never fails, even if the agent is stopped or
// gone. The agent frees the memory of the lines that it has read.
type Beats struct {
	Rank *Rank
	Path string // path of the file that the program may touch; the file need not exist

	mu      sync.Mutex
	file    *os.File      // nil after the file is closed
	offset  int64         // the file has been read up to this offset
	freed   int64         // the memory of the file has been freed up to this offset
	written unix.Timespec // when the file was last written
	partial []byte        // the last line, which has not ended yet
	touched time.Time
}

// NewBeats returns a Beats for a rank, and program, the file to which the program of the rank writes
// heartbeats. The caller must close that file. NewBeats must be called before the output of the rank is
// scanned.
func NewBeats(rank *Rank, path string) (b *Beats, program *os.File, err error) {
	const flags = unix.MFD_CLOEXEC
	fd, err := unix.MemfdCreate("gangrun-progress", flags|unix.MFD_NOEXEC_SEAL) // Linux 6.3
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("gangrun-progress", flags)
	}
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	ours := os.NewFile(uintptr(fd), "progress")
	// Every writer appends, even a process that has inherited the descriptor from a rank.
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), ours.Close())
	}
	theirs, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), ours.Close())
	}
	rank.beats = &Beats{Rank: rank, Path: path, file: ours}
	return rank.beats, os.NewFile(uintptr(theirs), "progress"), nil
}

// Poll reads what the program has written since the last Poll. It never waits.
func (b *Beats) Poll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return
	}
	var info unix.Stat_t
	if unix.Fstat(int(b.file.Fd()), &info) != nil || info.Size == b.offset && info.Mtim == b.written {
		return
	}
	if info.Size <= b.offset { // the program has truncated the file, as the redirection >/dev/fd/N of a shell does
		b.offset, b.freed, b.partial = 0, 0, nil
	}
	b.written = info.Mtim
	if skipped := info.Size - pollBytes; skipped > b.offset {
		b.offset, b.partial = skipped, nil
	}
	data := make([]byte, info.Size-b.offset)
	n, err := b.file.ReadAt(data, b.offset)
	if err != nil && err != io.EOF {
		return
	}
	b.offset += int64(n)
	b.lines(data[:n])
	if b.offset-b.freed > punchBytes {
		whole := b.offset &^ (punchBytes - 1) // the kernel frees only whole pages
		if unix.Fallocate(int(b.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, b.freed, whole-b.freed) == nil {
			b.freed = whole
		}
	}
}

// lines handles the lines that the program has written.
func (b *Beats) lines(data []byte) {
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		line := append(b.partial, data[:i]...)
		if p, ok := curve.Heartbeat(line); ok {
			b.Rank.tell(p)
		}
		b.partial, data = b.partial[:0], data[i+1:]
	}
	if b.partial = append(b.partial, data...); len(b.partial) > scanBytes {
		b.partial = b.partial[:0]
	}
}

// Touch finds out whether the program has touched the file at Path since the last call of Touch. It may have to
// wait for the file system.
func (b *Beats) Touch() {
	info, err := os.Lstat(b.Path)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := info.ModTime(); !at.Equal(b.touched) {
		b.touched = at
		b.Rank.beat()
	}
}

// Close reads what the program has written since the last Poll, and then closes the agent's descriptor of the
// file in memory.
func (b *Beats) Close() error {
	b.Poll()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	file := b.file
	b.file = nil
	return file.Close()
}
