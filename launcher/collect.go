package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// retryWrite is how long a log that cannot be written is left alone.
const retryWrite = 500 * time.Millisecond

// slowCollect is after how long it is told that logs are still on their way.
const slowCollect = 3 * time.Second

// collection is how what ranks on other machines print comes into the log files of
// the attempt, as it is printed. A slow line or a full disk here holds up no rank: it
// waits on the rank's host.
type collection struct {
	attempt job.Attempt
	emit    func(job.Event)
	cancel  context.CancelFunc
	shares  []*share
}

// share is what the ranks of one host print.
type share struct {
	node *node
	ask  *wire.OutputRequest
	logs map[logKey]*rankLog
	said runtimeLog

	over chan struct{} // closed when nothing more comes; what follows is read then
	why  string        // that is so, where not all has come
	left bool          // nobody waited for it
	kept bool          // its host keeps the rest, since its agent did not end in order
}

// rankLog is the file of one stream of a rank.
type rankLog struct {
	file  *os.File
	size  int64 // bytes that have arrived, those for an earlier controller included
	whole bool  // nothing is missing
}

// collect starts to collect what the ranks of nodes print.
func (l *Launcher) collect(a job.Attempt, nodes []*node, emit func(job.Event)) (*collection, error) {
	ctx, cancel := context.WithCancel(l.life)
	c := &collection{attempt: a, emit: emit, cancel: cancel}
	for _, n := range nodes {
		if n.agent.link.Local || n.lost != nil {
			continue
		}
		s := &share{node: n, ask: &wire.OutputRequest{Gang: gangName(a)}, logs: map[logKey]*rankLog{}, over: make(chan struct{})}
		c.shares = append(c.shares, s)
		for _, r := range n.ranks {
			if err := s.open(a, r.Rank); err != nil {
				c.close()
				return nil, err
			}
		}
		if err := s.said.find(a, n); err != nil {
			s.said.fail(err, emit)
			continue
		}
		s.ask.Ranks, s.ask.Out, s.ask.Err = append(s.ask.Ranks, runtimeRank), append(s.ask.Out, s.said.size), append(s.ask.Err, 0)
	}
	for _, s := range c.shares {
		s.node.fetched = s.over
		go s.fetch(ctx, emit) // wait waits for it
	}
	return c, nil
}

// open opens the logs of a rank, at whose ends goes on what an earlier controller
// has fetched.
func (s *share) open(a job.Attempt, rank int) error {
	s.ask.Ranks = append(s.ask.Ranks, int32(rank))
	for _, stream := range []string{"out", "err"} {
		f, err := os.OpenFile(filepath.Join(a.LogDir, job.LogName(rank, stream)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
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
	stream, err := s.node.agent.client.Output(ctx, s.ask)
	for err == nil {
		var reply *wire.OutputReply
		if reply, err = stream.Recv(); err != nil {
			break
		}
		if reply.Rank == runtimeRank {
			s.said.take(reply, emit)
			continue
		}
		log := s.logs[logKey{reply.Rank, reply.Stderr}]
		if log == nil {
			continue
		}
		if err = store(ctx, log.file, reply.Data, emit); err == nil {
			log.size += int64(len(reply.Data))
			log.whole = log.whole || reply.End
		}
	}
	s.left = ctx.Err() != nil
	gone := status.Code(err) == codes.Unavailable || status.Code(err) == codes.Canceled
	s.kept = s.node.agent.silence() > suspectAfter || gone && !s.left
	switch why := s.node.agent.why(err); {
	case s.left:
		s.why = "it was not waited for"
	case errors.Is(why, io.EOF):
		s.why = "the agent on its host has no more of it"
	default:
		s.why = why.Error()
		if told, ok := status.FromError(why); ok {
			s.why = told.Message()
		}
	}
}

// wait waits for the rest, which a host that is lost keeps, until hurry is closed.
// Meanwhile it calls watch now and then.
func (c *collection) wait(hurry <-chan struct{}, watch func()) {
	slow := time.NewTimer(slowCollect)
	defer slow.Stop()
	tick := time.NewTicker(suspectEvery)
	defer tick.Stop()
	for _, s := range c.shares {
		for open := true; open; {
			select {
			case <-s.over:
				open = false
			case <-tick.C:
				watch()
			case <-slow.C:
				c.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: c.attempt.Number, Text: "the ranks' output is still on its way from their hosts"})
			case <-hurry:
				hurry = nil
				c.cancel()
			}
		}
	}
	c.close()
}

func (c *collection) close() {
	c.cancel()
	for _, s := range c.shares {
		for _, log := range s.logs {
			_ = log.file.Close()
		}
		s.said.close()
	}
}

// cut returns the ranks whose output has not come to its end, and how many bytes of
// it have arrived.
func (s *share) cut() (ranks []int, arrived map[int]int64) {
	arrived = map[int]int64{}
	for _, r := range s.node.ranks {
		out, err := s.logs[logKey{int32(r.Rank), false}], s.logs[logKey{int32(r.Rank), true}]
		if !out.whole || !err.whole {
			ranks = append(ranks, r.Rank)
			arrived[r.Rank] = out.size + err.size
		}
	}
	return ranks, arrived
}

// maxCut is of how many ranks of a host it is told how much of their output arrived.
const maxCut = 4

// account tells whose output has not all arrived once the collection is over. A gang
// that has ended well otherwise has failed for want of it, or was ended by who did
// not wait for it.
func (g *running) account(c *collection) {
	well := !slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return !e.Good() || e.Stopped })
	for _, s := range c.shares {
		host := s.node.agent.host
		ranks, arrived := s.cut()
		ranks = slices.DeleteFunc(ranks, func(rank int) bool { // which has printed nothing
			return slices.ContainsFunc(g.outcome.Exits, func(e job.Exit) bool { return e.Rank == rank && e.Status == job.Unstarted })
		})
		if len(ranks) == 0 && !s.said.cut() {
			continue
		}
		var which []string
		for _, rank := range ranks[:min(len(ranks), maxCut)] {
			which = append(which, fmt.Sprintf("that of rank %d on %s after %d bytes", rank, host, arrived[rank]))
		}
		if more := len(ranks) - maxCut; more > 0 {
			which = append(which, fmt.Sprintf("that of %d more", more))
		}
		if s.said.cut() {
			which = append(which, fmt.Sprintf("%s of %s after %d bytes", filepath.Base(s.said.path), host, s.said.size))
		}
		rest := "its agent drops the rest when it ends"
		switch dir := s.node.agent.spool(g.attempt); {
		case errors.Is(s.node.agent.trouble(), ErrAnew):
			rest = fmt.Sprintf("the rest may be lost, since %s was started anew; what is left of it is in %s there", host, dir)
		case s.kept:
			rest = fmt.Sprintf("the rest is kept for 7 days on %s in %s", host, dir)
		}
		g.emitter.put(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: g.attempt.Number, Host: host,
			Text: fmt.Sprintf("output breaks off, %s: %s; %s", strings.Join(which, ", "), s.why, rest)})
		if !well || len(ranks) == 0 {
			continue
		}
		g.stopping = true // there is nobody left to end
		for _, e := range slices.Clone(g.outcome.Exits) {
			if slices.Contains(ranks, e.Rank) {
				e.Fault, e.Stopped = fmt.Sprintf("its output did not all arrive from %s: %s", host, s.why), s.left
				g.exit(e)
			}
		}
	}
}

// logKey is one stream of a rank.
type logKey struct {
	rank   int32
	stderr bool
}

// store writes a piece of a log, however long that takes; an error says that ctx has
// ended before.
func store(ctx context.Context, f *os.File, piece []byte, emit func(job.Event)) error {
	for told := false; ; told = true {
		n, err := f.Write(piece)
		piece = piece[n:]
		if err == nil {
			return nil
		}
		if !told {
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("a log cannot be written, its rank's output waits on its host: %v", err)})
		}
		select {
		case <-time.After(retryWrite):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
