package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/runclock"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/agents"
)

// retryWrite is the pause after which gangrun tries again to write a log.
const retryWrite = 500 * time.Millisecond

// hostLogs are the logs of the ranks of one host.
type hostLogs struct {
	attempt job.Attempt
	from    Source
	request *wire.OutputRequest
	logs    map[logKey]*rankLog
	runtime runtimeLog

	cancel   context.CancelCauseFunc
	progress progress

	over  chan struct{} // closed when no more output comes; end and late may be read after that
	end   fetchEnd
	fetch lateFetch
}

// progress says when the logs of a host were last written, and why they cannot be written now.
type progress struct {
	silence runclock.Silence // since the last write

	mu      sync.Mutex // guards the fields below
	written time.Time  // time of the last write
	stuck   error      // why nothing can be written at present
}

// fetchEnd says why no more output comes from a host, and what becomes of the rest.
type fetchEnd struct {
	why         string // empty if all output has come
	abandoned   bool   // gangrun did not wait for the rest
	maybeKept   bool   // the host may keep the rest: its agent did not end normally
	notWritten  bool   // the rest could not be written here, or gangrun gave it up
	keptForSure bool   // the agent has confirmed that the host keeps the rest
}

// lateFetch is what gangrun has fetched from a host after the host's agent was gone.
type lateFetch struct {
	complete bool  // all output that the host had kept has been fetched
	bytes    int64 // bytes fetched since the last note
	err      error // why the last try to fetch failed
}

// rankLog is the file of one stream of a rank.
type rankLog struct {
	file  *os.File
	size  int64 // bytes that have arrived, including bytes that an earlier controller has received
	whole bool  // no byte is missing
}

// logKey is one stream of a rank.
type logKey struct {
	rank   int32
	stderr bool
}

// newHostLogs returns the logs of a host. None of them is open.
func newHostLogs(a job.Attempt, from Source) *hostLogs {
	return &hostLogs{attempt: a, from: from, request: &wire.OutputRequest{Gang: a.GangName()}, logs: map[logKey]*rankLog{}, over: make(chan struct{})}
}

// lostLogs returns the logs of a host whose agent was gone when the gang was adopted. Output that no earlier controller
// has fetched may still be on the host.
func lostLogs(a job.Attempt, from Source) *hostLogs {
	h := newHostLogs(a, from)
	h.end = fetchEnd{why: from.Lost.Error(), maybeKept: true}
	if errors.Is(from.Lost, agents.ErrEnded) {
		h.end.why = "its agent was killed, or has ended because it had no controller"
	}
	for _, r := range from.Ranks {
		for _, stream := range []string{"out", "err"} {
			log := &rankLog{}
			if info, err := os.Stat(filepath.Join(a.LogDir, job.LogName(r.Rank, stream))); err == nil { // no file: no output
				log.size = info.Size()
			}
			h.logs[logKey{int32(r.Rank), stream == "err"}] = log
		}
	}
	_ = h.runtime.find(a, from) // if this fails, the log stays on the host
	h.runtime.close()
	close(h.over)
	return h
}

// openAll opens the logs of all ranks of the host, and the log of Open MPI's runtime.
func (h *hostLogs) openAll(emit func(job.Event)) error {
	for _, r := range h.from.Ranks {
		if err := h.open(r.Rank); err != nil {
			return err
		}
	}
	if err := h.runtime.find(h.attempt, h.from); err != nil {
		h.runtime.fail(err, emit)
		return nil
	}
	ask := h.request
	ask.Ranks, ask.Out, ask.Err = append(ask.Ranks, runtimeRank), append(ask.Out, h.runtime.size), append(ask.Err, 0)
	return nil
}

// open opens the two logs of a rank. New output is appended to what an earlier controller
// has fetched.
func (h *hostLogs) open(rank int) error {
	h.request.Ranks = append(h.request.Ranks, int32(rank))
	for _, stream := range []string{"out", "err"} {
		f, err := safefile.OpenFile(filepath.Join(h.attempt.LogDir, job.LogName(rank, stream)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return fmt.Errorf("make the log of rank %d: %w", rank, err)
		}
		log := &rankLog{file: f}
		h.logs[logKey{int32(rank), stream == "err"}] = log
		if log.size, err = f.Seek(0, io.SeekEnd); err != nil {
			return fmt.Errorf("find the end of the log of rank %d: %w", rank, err)
		}
		if stream == "out" {
			h.request.Out = append(h.request.Out, log.size)
		} else {
			h.request.Err = append(h.request.Err, log.size)
		}
	}
	return nil
}

// receive writes the output of the host's ranks to the logs. It returns when the output has ended, when the host is
// lost, or when ctx ends.
func (h *hostLogs) receive(ctx context.Context, emit func(job.Event)) {
	defer close(h.over)
	agent := h.from.Agent
	stream, err := agent.Client.Output(ctx, h.request)
	for err == nil {
		var reply *wire.OutputReply
		if reply, err = stream.Recv(); err != nil {
			break
		}
		if reply.Rank == runtimeRank {
			h.runtime.take(reply, emit)
			h.note(len(reply.Data), nil)
			continue
		}
		log := h.logs[logKey{reply.Rank, reply.Stderr}]
		if log == nil {
			continue
		}
		if err = h.store(ctx, log, reply.Data, emit); err == nil {
			log.whole = log.whole || reply.End
		}
	}
	var stalled errStalled
	gaveUp := errors.As(context.Cause(ctx), &stalled)
	h.end.abandoned = ctx.Err() != nil && !gaveUp
	h.end.notWritten = gaveUp || h.progress.stuck != nil
	h.end.maybeKept = agent.Silence() > agents.SuspectAfter || agents.HungUp(err) && !h.end.abandoned && !gaveUp
	switch why := agent.Why(err); {
	case gaveUp:
		h.end.why = stalled.Error()
	case h.end.abandoned:
		h.end.why = "it was not waited for"
	case errors.Is(why, io.EOF):
		h.end.why = "the agent there has no more of it"
	default:
		h.end.why = why.Error()
		if s, ok := status.FromError(why); ok {
			h.end.why = s.Message()
		}
	}
}

// state returns the time of the last write, and why nothing can be written at present.
func (h *hostLogs) state() (written time.Time, stuck error) {
	h.progress.mu.Lock()
	defer h.progress.mu.Unlock()
	return h.progress.written, h.progress.stuck
}

// note records the result of writing n bytes.
func (h *hostLogs) note(n int, err error) {
	h.progress.mu.Lock()
	defer h.progress.mu.Unlock()
	if h.progress.stuck = err; n > 0 || err == nil {
		h.progress.written = time.Now()
	}
}

// store writes a piece of a log. If the file cannot be written, store tries again and again. It returns an error only
// if ctx ends before the piece is written.
func (h *hostLogs) store(ctx context.Context, log *rankLog, piece []byte, emit func(job.Event)) error {
	for noted := false; ; noted = true {
		n, err := log.file.Write(piece)
		piece = piece[n:]
		log.size += int64(n)
		h.note(n, err)
		if err == nil {
			return nil
		}
		if !noted {
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("a log cannot be written, its rank's output waits on its host: %v; free space in %s", err, filepath.Dir(log.file.Name()))})
		}
		select {
		case <-time.After(retryWrite):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close closes the files and ends receive.
func (h *hostLogs) close() {
	if h.cancel != nil {
		h.cancel(nil)
	}
	for _, log := range h.logs {
		if log.file != nil {
			_ = log.file.Close()
		}
	}
	h.runtime.close()
}
