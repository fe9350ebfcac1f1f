package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/launcher/agents"
)

// partialLog is a log. The missing part of it is fetched from its host.
type partialLog struct {
	path  string
	size  *int64
	whole *bool
}

// partial returns the host's logs by their names. missing is true if a part of a log is missing. The result has
// complete logs as well, because their names tell the host which files it can remove.
func (h *hostLogs) partial() (logs map[string]partialLog, missing bool) {
	logs = map[string]partialLog{}
	for key, log := range h.logs {
		stream := "out"
		if key.stderr {
			stream = "err"
		}
		name := job.LogName(int(key.rank), stream)
		logs[name] = partialLog{filepath.Join(h.attempt.LogDir, name), &log.size, &log.whole}
		missing = missing || !log.whole
	}
	if h.runtime.path != "" && h.runtime.err == nil {
		logs[filepath.Base(h.runtime.path)] = partialLog{h.runtime.path, &h.runtime.size, &h.runtime.whole}
		missing = missing || h.runtime.truncated()
	}
	return logs, missing
}

// answers reports whether a host whose agent is gone answers again.
func (h *hostLogs) answers() bool {
	trouble := h.from.Agent.Trouble()
	return h.from.Lost != nil || errors.Is(trouble, agents.ErrGone) || errors.Is(trouble, agents.ErrRestarted)
}

// fetchRest fetches the output that the host's agent has left. That agent is gone. fetchRest gives up if ctx ends, if
// asking ends before anything has arrived, or if nothing has arrived for c.Limit.
func (c *Collector) fetchRest(asking, ctx context.Context, h *hostLogs) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopAsking := context.AfterFunc(asking, func() { cancel(context.Cause(asking)) })
	defer stopAsking()
	idle := time.AfterFunc(c.Limit, func() { cancel(errStalled{c.Limit, nil}) })
	defer idle.Stop()
	logs, _ := h.partial()
	want := agents.RestRequest{Gang: h.attempt.GangName(), Have: map[string]int64{}, Last: c.last(h)}
	for name, log := range logs {
		want.Have[name] = *log.size
	}
	want.Take = func(name string, whole bool, rest io.Reader) error {
		stopAsking()
		log, ok := logs[name]
		if !ok {
			return fmt.Errorf("%q was not asked for", name)
		}
		n, err := log.append(&idleReader{rest, idle, c.Limit})
		h.fetch.bytes += n
		*log.whole = *log.whole || err == nil && whole
		return err
	}
	h.fetch.err = h.from.Agent.Link.Rest(ctx, want)
	if h.fetch.err == nil {
		h.fetch.complete = true
		c.keeps(h, -1)
	}
	return h.fetch.err
}

// keeps adds change to the number of gangs of which the host's agent keeps output.
func (c *Collector) keeps(h *hostLogs, change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[h.from.Agent] += change
}

// last reports whether this is the last request for the output that the host's agent has left. It returns false if the
// output of an earlier controller's gang may still be needed.
func (c *Collector) last(h *hostLogs) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.from.Lost == nil && !h.from.Agent.Link.Held && c.kept[h.from.Agent] == 1 && h.runtime.err == nil
}

// append appends the rest of a log to the part that is on this machine.
func (l partialLog) append(rest io.Reader) (n int64, err error) {
	file, err := safefile.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() != *l.size {
		return 0, fmt.Errorf("%s has %d bytes, and not the %d that have come", l.path, info.Size(), *l.size)
	}
	n, err = io.Copy(file, rest)
	*l.size += n
	return n, err
}

// idleReader restarts a timer after each Read that returns data.
type idleReader struct {
	io.Reader
	idle  *time.Timer
	limit time.Duration
}

func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.idle.Reset(r.limit)
	}
	return n, err
}

// FetchLeft fetches the rest of the gang's output from hosts whose agents are gone, if these hosts answer. The
// output of a host that does not answer is fetched by Retry, while later gangs run. gone reports whether the
// agent of the Source with that Number is gone.
func (c *Collection) FetchLeft(gone func(number int) bool) {
	ctx, stop := agents.Unhurried(context.Background(), c.collector.hurry)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = agents.Each(len(c.hosts), func(i int) error {
			h := c.hosts[i]
			c.collector.fetchOrDefer(ctx, h, h.from.Lost != nil || gone(h.from.Number))
			return nil
		})
	}()
	c.noteSlow(done)
}

// noteSlow waits until done is closed. If that takes long, noteSlow emits a note.
func (c *Collection) noteSlow(done <-chan struct{}) {
	slow := time.NewTimer(slowCollect)
	defer slow.Stop()
	select {
	case <-done:
		return
	case <-slow.C:
		c.note("", "what hosts have kept of the ranks' output is still on its way; Ctrl-C twice leaves it there")
	}
	<-done
}

// fetchOrDefer fetches the missing parts of a host's logs. If that is not possible yet, Retry fetches them later. If
// nothing is missing and the agent is gone, fetchOrDefer has the host remove the agent's directory.
func (c *Collector) fetchOrDefer(ctx context.Context, h *hostLogs, gone bool) {
	_, missing := h.partial()
	if missing && !h.end.maybeKept && !h.end.notWritten || !missing && !gone {
		return
	}
	c.keeps(h, 1)
	if h.end.notWritten || h.from.Agent.Link.Rest == nil || h.answers() && c.fetchRest(ctx, ctx, h) == nil {
		return
	}
	if !missing {
		c.keeps(h, -1)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, h)
}

// Retry starts to ask lost hosts again and again for the output of earlier gangs that is still there. The
// function stop ends this, and waits for requests that are under way.
func (c *Collection) Retry() (stop func()) {
	asking, enough := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.collector.retry(asking, c.emit) }()
	return func() { enough(); c.noteSlow(done) }
}

// retry fetches the output that lost hosts keep. After asking has ended, retry starts no more fetches.
func (c *Collector) retry(asking context.Context, emit func(job.Event)) {
	c.mu.Lock()
	pending := slices.Clone(c.pending)
	c.mu.Unlock()
	ctx, stop := agents.Unhurried(context.Background(), c.hurry)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, h := range pending {
		wg.Go(func() {
			for c.fetchRest(asking, ctx, h) != nil {
				select {
				case <-time.After(c.RetryEvery):
				case <-asking.Done():
					return
				case <-ctx.Done():
					return
				}
			}
			c.mu.Lock()
			c.pending = slices.DeleteFunc(c.pending, func(p *hostLogs) bool { return p == h })
			c.mu.Unlock()
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: h.attempt.Number, Host: h.from.Agent.Host, Text: h.fetched()})
		})
	}
}

// fetched returns a note about the output that was fetched from a host.
func (h *hostLogs) fetched() string {
	text := fmt.Sprintf("%d more bytes that the ranks on %s had printed in attempt %d have been fetched", h.fetch.bytes, h.from.Agent.Host, h.attempt.Number)
	if _, missing := h.partial(); missing {
		return text + "; the rest of their output is not there"
	}
	return text + ", and nothing of it is missing now"
}
