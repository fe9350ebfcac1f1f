package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// feedBytes is the size of a piece of standard input.
const feedBytes = 32 << 10

// feed carries standard input to the ranks that the attempt names until it
// ends or ctx does. Every attempt gets it from its beginning, where it can be read again
// or was kept; tell is told where that is not so. A trial gets nothing that could not
// be given to the gang as well: it waits for that in vain.
func (l *Launcher) feed(ctx context.Context, a job.Attempt, nodes []*node, tell func(job.Event)) {
	in := l.input
	if in == nil || a.Adopt { // what fed them is gone
		return
	}
	var to []wire.Agent_FeedClient
	var ranks []int32
	for _, n := range nodes {
		for _, r := range n.ranks {
			if !a.Stdin.Feeds(r.Rank) {
				continue
			}
			stream, err := n.agent.client.Feed(ctx)
			if err != nil {
				continue // the agent is lost, which the gang's own stream tells
			}
			// An empty piece says whose input this is, even if no more follows.
			_ = stream.Send(&wire.FeedRequest{Gang: gangName(a), Rank: int32(r.Rank)})
			to, ranks = append(to, stream), append(ranks, int32(r.Rank))
		}
	}
	if len(to) == 0 {
		return
	}
	defer func() {
		for _, stream := range to {
			_ = stream.CloseSend()
		}
	}()
	if in.lost && a.Number > 1 {
		tell(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: a.Number,
			Text: fmt.Sprintf("this attempt gets only what is left of standard input: %v", in.stuck)})
	}
	offset := int64(0)
	for buffer := make([]byte, feedBytes); ; {
		if a.Trial() && (in.kind == inputTerminal || offset == in.has() && in.full(len(buffer))) {
			<-ctx.Done() // its standard input stays open meanwhile
			return
		}
		n, err := in.read(ctx, offset, buffer)
		offset += int64(n)
		alive := 0
		for i, stream := range to {
			if stream.Send(&wire.FeedRequest{Gang: gangName(a), Rank: ranks[i], Data: buffer[:n]}) == nil {
				alive++
			}
		}
		if err != nil || alive == 0 {
			return
		}
	}
}

// readReady reads what is there, waiting for it within ctx. On a terminal it
// leaves the input alone while gangrun is in the background: a read would stop
// the process (SIGTTIN).
func readReady(ctx context.Context, file *os.File, buffer []byte) (int, error) {
	fd := int(file.Fd())
	for ctx.Err() == nil {
		if foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && foreground != unix.Getpgrp() {
			if err := pause(ctx); err != nil {
				return 0, err
			}
			continue
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pollMillis)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return 0, err
		}
		n, err := unix.Read(fd, buffer)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
	return 0, ctx.Err()
}

// pollMillis is how soon a wait for input sees that its attempt has ended, in
// milliseconds.
const pollMillis = 20

func pause(ctx context.Context) error {
	_, err := unix.Poll(nil, pollMillis)
	if err == unix.EINTR {
		err = nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
