package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/wire"
)

// retryWrite is how long a log that cannot be written is left alone.
const retryWrite = 500 * time.Millisecond

// share is what the ranks of one host print.
type share struct {
	attempt job.Attempt
	node    *node
	ask     *wire.OutputRequest
	logs    map[logKey]*rankLog
	said    runtimeLog

	cancel   context.CancelCauseFunc
	progress progress

	over    chan struct{} // closed when nothing more comes; end and salvage are read after that
	end     shareEnd
	salvage salvage
}

// progress is whether and when output of a share was written.
type progress struct {
	silence agents.SilenceMeter // how long nothing has come

	mu    sync.Mutex // guards what follows
	moved time.Time  // when some of it was written last
	stuck error      // why it cannot be written at present
}

// shareEnd is why nothing more of a share comes, and what becomes of the rest.
type shareEnd struct {
	why         string // empty if all has come
	abandoned   bool   // gangrun did not wait for it
	maybeKept   bool   // its host may keep the rest: its agent did not end normally
	notWritten  bool   // it could not be written here, or was given up
	keptForSure bool   // its agent has confirmed that the host keeps the rest
}

// salvage is what was fetched of a share after its agent had gone.
type salvage struct {
	complete bool  // all that the host had kept is here
	bytes    int64 // how much was fetched since the last note
	err      error // why the last try failed
}

// rankLog is the file of one stream of a rank.
type rankLog struct {
	file  *os.File
	size  int64 // bytes that have arrived, those for an earlier controller included
	whole bool  // nothing is missing
}

// logKey is one stream of a rank.
type logKey struct {
	rank   int32
	stderr bool
}

// lostShare is that of a host whose agent was not there any more when the gang was
// adopted: what an earlier controller has not fetched is left to salvage.
func lostShare(a job.Attempt, n *node) *share {
	s := &share{attempt: a, node: n, logs: map[logKey]*rankLog{}, over: make(chan struct{}), end: shareEnd{why: n.lost.Error(), maybeKept: true}}
	if errors.Is(n.lost, agents.ErrEnded) {
		s.end.why = "its agent was killed, or has ended for want of a controller"
	}
	for _, r := range n.ranks {
		for _, stream := range []string{"out", "err"} {
			log := &rankLog{}
			if info, err := os.Stat(filepath.Join(a.LogDir, job.LogName(r.Rank, stream))); err == nil { // else nothing has come
				log.size = info.Size()
			}
			s.logs[logKey{int32(r.Rank), stream == "err"}] = log
		}
	}
	_ = s.said.find(a, n) // else it stays on the host
	s.said.close()
	close(s.over)
	return s
}

// open opens the logs of a rank, at whose ends goes on what an earlier controller
// has fetched.
func (s *share) open(a job.Attempt, rank int) error {
	s.ask.Ranks = append(s.ask.Ranks, int32(rank))
	for _, stream := range []string{"out", "err"} {
		f, err := safefile.OpenFile(filepath.Join(a.LogDir, job.LogName(rank, stream)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return fmt.Errorf("make the log of rank %d: %w", rank, err)
		}
		log := &rankLog{file: f}
		s.logs[logKey{int32(rank), stream == "err"}] = log
		if log.size, err = f.Seek(0, io.SeekEnd); err != nil {
			return fmt.Errorf("find the end of the log of rank %d: %w", rank, err)
		}
		if stream == "out" {
			s.ask.Out = append(s.ask.Out, log.size)
		} else {
			s.ask.Err = append(s.ask.Err, log.size)
		}
	}
	return nil
}

// fetch brings the share, up to its end, the loss of the host or the end of ctx.
func (s *share) fetch(ctx context.Context, emit func(job.Event)) {
	defer close(s.over)
	stream, err := s.node.agent.Client.Output(ctx, s.ask)
	for err == nil {
		var reply *wire.OutputReply
		if reply, err = stream.Recv(); err != nil {
			break
		}
		if reply.Rank == runtimeRank {
			s.said.take(reply, emit)
			s.note(len(reply.Data), nil)
			continue
		}
		log := s.logs[logKey{reply.Rank, reply.Stderr}]
		if log == nil {
			continue
		}
		if err = s.store(ctx, log, reply.Data, emit); err == nil {
			log.whole = log.whole || reply.End
		}
	}
	var stalled errStalled
	given := errors.As(context.Cause(ctx), &stalled)
	s.end.abandoned = ctx.Err() != nil && !given
	s.end.notWritten = given || s.progress.stuck != nil
	s.end.maybeKept = s.node.agent.Silence() > agents.SuspectAfter || agents.HungUp(err) && !s.end.abandoned && !given
	switch why := s.node.agent.Why(err); {
	case given:
		s.end.why = stalled.Error()
	case s.end.abandoned:
		s.end.why = "it was not waited for"
	case errors.Is(why, io.EOF):
		s.end.why = "the agent on its host has no more of it"
	default:
		s.end.why = why.Error()
		if told, ok := status.FromError(why); ok {
			s.end.why = told.Message()
		}
	}
}

// state is when some of the share was written last, and why none can be at present.
func (s *share) state() (moved time.Time, stuck error) {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.moved, s.progress.stuck
}

// note notes what has come of writing n bytes.
func (s *share) note(n int, err error) {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	if s.progress.stuck = err; n > 0 || err == nil {
		s.progress.moved = time.Now()
	}
}

// store writes a piece of a log, however long that takes; an error says that ctx has
// ended before.
func (s *share) store(ctx context.Context, log *rankLog, piece []byte, emit func(job.Event)) error {
	for told := false; ; told = true {
		n, err := log.file.Write(piece)
		piece = piece[n:]
		log.size += int64(n)
		s.note(n, err)
		if err == nil {
			return nil
		}
		if !told {
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("a log cannot be written, its rank's output waits on its host: %v; free space in %s", err, filepath.Dir(log.file.Name()))})
		}
		select {
		case <-time.After(retryWrite):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
