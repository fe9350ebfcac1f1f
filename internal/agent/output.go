package agent

import (
	"io"
	"os"

	"github.com/gangrun/gangrun/internal/wire"
)

// chunkBytes is the size of a piece of output on its way to the terminal.
const chunkBytes = 32 << 10

// Output implements wire.AgentServer. It reads the log files, not the pipes:
// a terminal that is slow or stopped costs a file offset and nothing else.
func (s *server) Output(r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	if c := s.containedFor(r.Gang); c != nil {
		return passOutput(c, r, to)
	}
	ctx := to.Context()
	g, err := s.gang(ctx, r.Gang)
	if err != nil {
		return err
	}
	followers, err := g.follow(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range followers {
			f.close()
		}
	}()
	for buffer := make([]byte, chunkBytes); len(followers) > 0; {
		change := g.bell.wait()
		moved := false
		for i := 0; i < len(followers); i++ {
			f := followers[i]
			sent, ended, err := f.step(buffer, to)
			if err != nil {
				return err
			}
			moved = moved || sent
			if ended {
				f.close()
				followers = append(followers[:i], followers[i+1:]...)
				i--
			}
		}
		if moved || len(followers) == 0 {
			continue
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// follower is a place in one stream's log file.
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

// step sends the next piece, if there is one, or the end.
func (f *follower) step(buffer []byte, to wire.Agent_OutputServer) (sent, ended bool, err error) {
	written, closed := f.stream.state()
	reply := &wire.OutputReply{Rank: int32(f.stream.rank), Stderr: f.stream.stderr}
	if f.offset >= written {
		if closed && f.stream.lost != nil {
			return false, true, nil // it ends without an end
		}
		if closed {
			reply.End = true
			return false, true, to.Send(reply)
		}
		return false, false, nil
	}
	n, err := f.read(buffer[:min(int64(len(buffer)), written-f.offset)])
	if err != nil {
		if f.stream.rank == runtimeRank {
			err = nil // which is not the ranks' loss: it ends without an end
		}
		return false, err == nil, err
	}
	f.offset += int64(n)
	reply.Data = buffer[:n]
	return true, false, to.Send(reply) // Send has copied the buffer when it returns
}

// read reads the next piece, or some of it.
func (f *follower) read(piece []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.stream.path); err != nil {
			return 0, err
		}
	}
	if n, err = f.file.ReadAt(piece, f.offset); err != nil && err != io.EOF || n == 0 {
		return 0, io.ErrUnexpectedEOF // somebody cut the log file
	}
	return n, nil
}
