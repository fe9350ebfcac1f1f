package output

import (
	"io"
	"os"
)

// Follow returns a Follower of s that begins at offset in the log file.
func Follow(s *Stream, offset int64) *Follower { return &Follower{Stream: s, Offset: offset} }

// Follower reads the log file of one stream as it grows.
type Follower struct {
	Stream *Stream
	file   *os.File // nil until there is something to read
	Offset int64
}

func (f *Follower) Close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// Step calls send with the next piece of the log, or with end set at the end of the stream. sent is true if
// there was a piece. ended is true if no more will come. If a part of the stream was lost, Step never calls
// send with end set.
func (f *Follower) Step(buffer []byte, send func(piece []byte, end bool) error) (sent, ended bool, err error) {
	written, closed := f.Stream.state()
	if f.Offset >= written {
		switch {
		case !closed:
			return false, false, nil
		case f.Stream.lost != nil:
			return false, true, nil
		}
		return false, true, send(nil, true)
	}
	n, err := f.read(buffer[:min(int64(len(buffer)), written-f.Offset)])
	if err != nil {
		if f.Stream.Rank == RuntimeRank {
			return false, true, nil // not an output of the ranks: it has no end
		}
		return false, false, err
	}
	f.Offset += int64(n)
	return true, false, send(buffer[:n], false)
}

// read reads the next piece, or some of it.
func (f *Follower) read(piece []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.Stream.Path); err != nil {
			return 0, err
		}
	}
	if n, err = f.file.ReadAt(piece, f.Offset); err != nil && err != io.EOF || n == 0 {
		return 0, io.ErrUnexpectedEOF // somebody has truncated the log file
	}
	return n, nil
}

// RuntimeRank takes the place of a rank's number for output that comes from no rank, but from
// mpirun or from Open MPI's daemon.
const RuntimeRank = -1
