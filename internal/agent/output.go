package agent

import (
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
			f.Close()
		}
	}()
	for buffer := make([]byte, chunkBytes); len(followers) > 0; {
		change := g.bell.Changed()
		moved := false
		for i := 0; i < len(followers); i++ {
			f := followers[i]
			sent, ended, err := f.Step(buffer, func(piece []byte, end bool) error {
				// Send has copied the piece when it returns.
				return to.Send(&wire.OutputReply{Rank: int32(f.Stream.Rank), Stderr: f.Stream.Stderr, Data: piece, End: end})
			})
			if err != nil {
				return err
			}
			moved = moved || sent
			if ended {
				f.Close()
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
