package launcher

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

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// restEvery is how long a host that has kept output, and was lost, is left alone
// between two questions for it.
const restEvery = 10 * time.Second

// reopened is a log to whose end goes what comes late.
type reopened struct {
	path  string
	size  *int64
	whole *bool
}

// reopen returns the share's logs by their names, and whether something is missing of
// one. Those that are complete are named to the host, too, which can remove them then.
func (s *share) reopen() (logs map[string]reopened, missing bool) {
	logs = map[string]reopened{}
	for key, log := range s.logs {
		stream := "out"
		if key.stderr {
			stream = "err"
		}
		name := job.LogName(int(key.rank), stream)
		logs[name] = reopened{filepath.Join(s.attempt.LogDir, name), &log.size, &log.whole}
		missing = missing || !log.whole
	}
	if s.said.path != "" && s.said.err == nil {
		logs[filepath.Base(s.said.path)] = reopened{s.said.path, &s.said.size, &s.said.whole}
		missing = missing || s.said.cut()
	}
	return logs, missing
}

// answers reports whether the host of a share whose agent is gone has been heard since.
func (s *share) answers() bool {
	return s.node.lost != nil || errors.Is(s.node.agent.Trouble(), agents.ErrGone) || errors.Is(s.node.agent.Trouble(), agents.ErrRestarted)
}

// rest fetches what the share's agent, which is gone, has left. The end of asking ends
// it before anything has come, that of ctx at any time; limit is how long nothing may
// come.
func (s *share) rest(asking, ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	come := context.AfterFunc(asking, func() { cancel(context.Cause(asking)) })
	defer come()
	idle := time.AfterFunc(limit, func() { cancel(errStalled{limit, nil}) })
	defer idle.Stop()
	logs, _ := s.reopen()
	want := agents.RestRequest{Gang: s.attempt.GangName(), Have: map[string]int64{}, Last: s.last()}
	for name, log := range logs {
		want.Have[name] = *log.size
	}
	want.Take = func(name string, whole bool, rest io.Reader) error {
		come()
		log, ok := logs[name]
		if !ok {
			return fmt.Errorf("%q was not asked for", name)
		}
		n, err := log.append(&lively{rest, idle, limit})
		s.salvage.bytes += n
		*log.whole = *log.whole || err == nil && whole
		return err
	}
	s.salvage.err = s.node.agent.Link.Rest(ctx, want)
	if s.salvage.err == nil {
		s.salvage.complete = true
		s.node.agent.Owed.Add(-1)
	}
	return s.salvage.err
}

// last reports whether nothing else is wanted of what the share's agent has left: not
// where an earlier controller may have wanted something.
func (s *share) last() bool {
	return s.node.lost == nil && !s.node.agent.Link.Held && s.node.agent.Owed.Load() == 1 && s.said.err == nil
}

// append puts the rest of a log behind what there is of it.
func (r reopened) append(rest io.Reader) (n int64, err error) {
	file, err := safefile.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() != *r.size {
		return 0, fmt.Errorf("%s has %d bytes, and not the %d that have come", r.path, info.Size(), *r.size)
	}
	n, err = io.Copy(file, rest)
	*r.size += n
	return n, err
}

// lively puts off the end of a wait with each read that is done.
type lively struct {
	io.Reader
	idle  *time.Timer
	limit time.Duration
}

func (r *lively) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.idle.Reset(r.limit)
	}
	return n, err
}

// salvage fetches what is left of a gang's output on hosts whose agents are gone, and
// that answer. Of others it is asked for while later gangs run.
func (l *Launcher) salvage(c *collection) {
	ctx, stop := l.unhurried(context.Background())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = agents.Each(len(c.shares), func(i int) error { l.claim(ctx, c.shares[i], c.limit); return nil })
	}()
	c.tellSlow(done)
}

// tellSlow waits for done, and tells when that takes long.
func (c *collection) tellSlow(done <-chan struct{}) {
	slow := time.NewTimer(slowCollect)
	defer slow.Stop()
	select {
	case <-done:
		return
	case <-slow.C:
		c.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: c.attempt.Number, Text: "what hosts have kept of the ranks' output is still on its way; Ctrl-C twice leaves it there"})
	}
	<-done
}

// claim fetches what is left of a share, or puts that off. Where nothing is missing, an
// agent that is gone has its directory removed.
func (l *Launcher) claim(ctx context.Context, s *share, limit time.Duration) {
	_, missing := s.reopen()
	gone := s.node.lost != nil || !s.node.gone.IsZero()
	if missing && !s.end.maybeKept && !s.end.notWritten || !missing && !gone {
		return
	}
	s.node.agent.Owed.Add(1)
	if s.end.notWritten || s.node.agent.Link.Rest == nil || s.answers() && s.rest(ctx, ctx, limit) == nil {
		return
	}
	if !missing {
		s.node.agent.Owed.Add(-1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = append(l.owed, s)
}

// reminding reminds hosts until stop is called, which waits for what is on its way.
func (l *Launcher) reminding(c *collection) (stop func()) {
	asking, enough := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); l.remind(asking, c.emit) }()
	return func() { enough(); c.tellSlow(done) }
}

// remind asks hosts again and again for what they have kept of earlier gangs, until
// asking ends; what is on its way by then is waited for.
func (l *Launcher) remind(asking context.Context, emit func(job.Event)) {
	l.mu.Lock()
	owed := slices.Clone(l.owed)
	l.mu.Unlock()
	ctx, stop := l.unhurried(context.Background())
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range owed {
		wg.Go(func() {
			for s.rest(asking, ctx, l.limits.collect) != nil {
				select {
				case <-time.After(l.limits.retryRest):
				case <-asking.Done():
					return
				case <-ctx.Done():
					return
				}
			}
			l.mu.Lock()
			l.owed = slices.DeleteFunc(l.owed, func(o *share) bool { return o == s })
			l.mu.Unlock()
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: s.attempt.Number, Host: s.node.agent.Host, Text: s.came()})
		})
	}
}

// came tells of what a host had kept and has been fetched since that was told last.
func (s *share) came() string {
	text := fmt.Sprintf("%d more bytes that the ranks on %s had printed in attempt %d have been fetched", s.salvage.bytes, s.node.agent.Host, s.attempt.Number)
	if _, missing := s.reopen(); missing {
		return text + "; more of it is not there, though it breaks off"
	}
	return text + ", and nothing of it is missing now"
}
