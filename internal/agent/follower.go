package agent

import (
	"io"
	"os"
)

// newFollower follows a stream from an offset of its log file on.
func newFollower(s *stream, offset int64) *follower { return &follower{stream: s, offset: offset} }

// follower reads the log file of one stream as it grows.
type follower struct {
	stream *stream
	file   *os.File // nil until there is something to read
	offset int64
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// step passes the next piece of the log to send, or the end of the stream. It reports
// whether there was a piece, and whether nothing more comes. A stream of which a part was
// lost has no end.
func (f *follower) step(buffer []byte, send func(piece []byte, end bool) error) (sent, ended bool, err error) {
	written, closed := f.stream.state()
	if f.offset >= written {
		switch {
		case !closed:
			return false, false, nil
		case f.stream.lost != nil:
			return false, true, nil
		}
		return false, true, send(nil, true)
	}
	n, err := f.read(buffer[:min(int64(len(buffer)), written-f.offset)])
	if err != nil {
		if f.stream.Rank == runtimeRank {
			return false, true, nil // not an output of the ranks: it has no end
		}
		return false, false, err
	}
	f.offset += int64(n)
	return true, false, send(buffer[:n], false)
}

// read reads the next piece, or some of it.
func (f *follower) read(piece []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.stream.Path); err != nil {
			return 0, err
		}
	}
	if n, err = f.file.ReadAt(piece, f.offset); err != nil && err != io.EOF || n == 0 {
		return 0, io.ErrUnexpectedEOF // somebody has truncated the log file
	}
	return n, nil
}
