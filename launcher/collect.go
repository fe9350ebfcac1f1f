package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// retryWrite is how long a log that cannot be written is left alone.
const retryWrite = 500 * time.Millisecond

// slowCollect is after how long it is told that logs are still on their way.
const slowCollect = 3 * time.Second

// collect brings what ranks on other machines print into the log files of the
// attempt, as it is printed. A slow line or a full disk here holds up no rank: it
// waits on the rank's host. The function it returns waits for the rest, which a
// host that is lost keeps, until hurry is closed.
func (l *Launcher) collect(a job.Attempt, nodes []*node, emit func(job.Event)) (rest func(hurry <-chan struct{}), err error) {
	ctx, cancel := context.WithCancel(l.life)
	var wg sync.WaitGroup
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for _, n := range nodes {
		if n.agent.link.Local || n.lost != nil {
			continue
		}
		logs := map[logKey]*os.File{}
		ask := &wire.OutputRequest{Gang: gangName(a)}
		for _, r := range n.ranks {
			ask.Ranks = append(ask.Ranks, int32(r.Rank))
			for _, stream := range []string{"out", "err"} {
				f, err := os.OpenFile(filepath.Join(a.LogDir, job.LogName(r.Rank, stream)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
				if err != nil {
					cancel()
					closeAll()
					wg.Wait()
					return nil, fmt.Errorf("make the log of rank %d: %w", r.Rank, err)
				}
				files = append(files, f)
				size, err := f.Seek(0, io.SeekEnd) // what an earlier controller has fetched
				if err != nil {
					cancel()
					closeAll()
					wg.Wait()
					return nil, fmt.Errorf("find the end of the log of rank %d: %w", r.Rank, err)
				}
				if stream == "out" {
					ask.Out = append(ask.Out, size)
				} else {
					ask.Err = append(ask.Err, size)
				}
				logs[logKey{int32(r.Rank), stream == "err"}] = f
			}
		}
		wg.Go(func() {
			stream, err := n.agent.client.Output(ctx, ask)
			if err != nil {
				return // the agent is lost, which the gang's own stream tells
			}
			for {
				reply, err := stream.Recv()
				if err != nil {
					return // io.EOF, or the agent is lost
				}
				if f := logs[logKey{reply.Rank, reply.Stderr}]; f != nil && !store(ctx, f, reply.Data, emit) {
					return
				}
			}
		})
	}
	return func(hurry <-chan struct{}) {
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		slow := time.NewTimer(slowCollect)
		defer slow.Stop()
		for waiting := true; waiting; {
			select {
			case <-done:
				waiting = false
			case <-slow.C:
				emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: a.Number, Text: "the ranks' output is still on its way from their hosts"})
			case <-hurry:
				waiting = false
			}
		}
		cancel()
		<-done
		closeAll()
	}, nil
}

// logKey is one stream of a rank.
type logKey struct {
	rank   int32
	stderr bool
}

// store writes a piece of a log, however long that takes; false when ctx has ended
// before.
func store(ctx context.Context, f *os.File, piece []byte, emit func(job.Event)) bool {
	for told := false; ; told = true {
		n, err := f.Write(piece)
		piece = piece[n:]
		if err == nil {
			return true
		}
		if !told {
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("a log cannot be written, its rank's output waits on its host: %v", err)})
		}
		select {
		case <-time.After(retryWrite):
		case <-ctx.Done():
			return false
		}
	}
}
