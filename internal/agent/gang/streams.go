package gang

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/wire"
)

// pieceBytes is the size of a piece of output on its way to the terminal.
const pieceBytes = 32 << 10

// CopyOutput sends the output of the ranks in want as it grows, until it has sent all output or ctx ends. The data of
// a piece is valid only until send returns. CopyOutput reads the log files, not the pipes. Therefore a slow or
// stopped terminal does not stop the ranks, and output that the terminal cannot take yet does not fill the memory.
func (g *Gang) CopyOutput(ctx context.Context, want *wire.OutputRequest, send func(*wire.OutputReply) error) error {
	if err := g.await(ctx); err != nil {
		return err
	}
	followers := g.followers(want)
	defer func() {
		for _, f := range followers {
			f.Close()
		}
	}()
	for buffer := make([]byte, pieceBytes); len(followers) > 0; {
		change := g.grew.Changed()
		moved := false
		for i := 0; i < len(followers); i++ {
			f := followers[i]
			sent, ended, err := f.Step(buffer, func(piece []byte, end bool) error {
				return send(&wire.OutputReply{Rank: int32(f.Stream.Rank), Stderr: f.Stream.Stderr, Data: piece, End: end})
			})
			if err != nil {
				return err
			}
			moved = moved || sent
			if ended {
				f.Close()
				followers = slices.Delete(followers, i, i+1)
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

// followers returns a follower for each stream of the wanted ranks. The ranks must have been
// started.
func (g *Gang) followers(want *wire.OutputRequest) (all []*output.Follower) {
	from := func(offsets []int64, i int) int64 {
		if i < len(offsets) {
			return max(0, offsets[i])
		}
		return 0
	}
	for _, r := range g.ranks {
		if i := slices.Index(want.Ranks, int32(r.number)); i >= 0 {
			all = append(all, output.Follow(r.out, from(want.Out, i)), output.Follow(r.err, from(want.Err, i)))
		}
	}
	if i := slices.Index(want.Ranks, output.RuntimeRank); i >= 0 && g.runtime != nil {
		all = append(all, output.Follow(g.runtime.Log(), from(want.Out, i)))
	}
	return all
}

// Stdin returns the end of a rank's standard input to which the agent writes.
func (g *Gang) Stdin(ctx context.Context, rank int) (*os.File, error) {
	if err := g.await(ctx); err != nil {
		return nil, err
	}
	for _, r := range g.ranks {
		if r.number == rank && r.stdin != nil {
			return r.stdin, nil
		}
	}
	return nil, fmt.Errorf("rank %d takes no standard input here", rank)
}

// await waits until the ranks have been started.
func (g *Gang) await(ctx context.Context) error {
	select {
	case <-g.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
