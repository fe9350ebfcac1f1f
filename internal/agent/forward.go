package agent

import (
	"cmp"
	"context"
	"io"
	"sync"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// containedFor returns the contained agent that runs a gang, or nil if no contained agent runs it.
func (s *server) containedFor(gang string) *contained {
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	if s.gangs.contained == nil || s.gangs.contained.gang != gang {
		return nil
	}
	return s.gangs.contained
}

// retire ends the contained agent, if there is one, and frees the memory of its layer. After that, nobody can follow
// the output of its gang, but the output is in the log files.
func (s *server) retire() {
	s.gangs.mu.Lock()
	c := s.gangs.contained
	s.gangs.contained = nil
	s.gangs.mu.Unlock()
	if c != nil {
		c.close()
	}
}

// forwarded is a gang that a contained agent runs.
type forwarded struct {
	*contained
	host    string
	ranks   []int
	ended   map[int]bool // ranks whose exits have been reported
	reports *report.Queue

	mu sync.Mutex // guards sends on to
	to wire.Agent_GangClient
}

// startForwarded makes a contained agent start a gang. It forwards the replies of that agent until the last one.
func (s *server) startForwarded(c *contained, start *wire.Start) (*startedGang, error) {
	host, _ := s.settings.get()
	logs, err := s.logDir(c.gang, string(start.LogDir))
	if err != nil {
		return nil, err
	}
	start.Spooled = len(start.LogDir) == 0
	start.LogDir = []byte(logs)
	f := &forwarded{contained: c, host: host, ended: map[int]bool{}, reports: &report.Queue{Keep: s.link.dir != ""}}
	for _, r := range start.Ranks {
		f.ranks = append(f.ranks, int(r.Rank))
	}
	if b, ok := c.room.(boxRoom); ok {
		b.adapt(start)
	}
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	if s.gangs.busy {
		return nil, errBusy
	}
	ctx, cancel := context.WithCancel(s.life)
	f.to, err = c.client.Gang(ctx)
	if err == nil {
		err = f.to.Send(&wire.GangRequest{Kind: &wire.GangRequest_Start{Start: start}})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	g := &startedGang{take: f.take, reports: f.reports, cancel: cancel}
	s.gangs.add(c.gang, g)
	s.running.Go(func() {
		defer cancel()
		done := f.receive()
		s.gangs.dismiss() // before the last report, because the controller may start the next gang at once
		f.reports.Done(done.GetUnreaped())
	})
	return g, nil
}

// take forwards a request. It returns false if the gang takes no more requests.
func (f *forwarded) take(r *wire.GangRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to.Send(r) == nil
}

// receive queues the replies of the contained agent, and returns the Done of the last reply. If that agent ends before
// its ranks do, receive reports the ranks as lost.
func (f *forwarded) receive() *wire.Done {
	for {
		reply, err := f.to.Recv()
		if err != nil {
			f.lose(err)
			return nil
		}
		done := reply.Done
		reply.Done = nil
		for _, data := range reply.Events {
			var e job.Event
			if exact.Unmarshal(data, &e) == nil && e.Exit != nil {
				f.ended[e.Exit.Rank] = true
			}
		}
		if len(reply.Wireup) > 0 { // a newer report replaces an older one
			var up job.Wireup
			if exact.Unmarshal(reply.Wireup, &up) == nil {
				f.reports.Wireup(up)
			}
			reply.Wireup = nil
		}
		f.reports.Add(func(m *wire.GangReply) { proto.Merge(m, reply) })
		if done != nil {
			return done
		}
	}
}

// lose reports the ranks whose exits have not been reported as lost.
func (f *forwarded) lose(err error) {
	notify.Wait(f.room.exited(), lastReplyLimit) // the agent may be about to write the reason
	why, reason := "its container ended: "+cmp.Or(f.room.said(), status.Convert(err).Message()), job.ReasonContainerEnded
	if f.room.outOfMemory() {
		why, reason = "the memory of its container was used up, and gangrun's agent in it ended", job.ReasonContainerMemory
	}
	for _, rank := range f.ranks {
		if !f.ended[rank] {
			exit := job.Exit{Rank: rank, Host: f.host, Status: job.Lost, Time: hostclock.Now(), Text: why, Reason: reason}
			f.reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
		}
	}
}

// forwardFeed forwards standard input to a contained agent. first is the request that has
// already been received.
func forwardFeed(c *contained, first *wire.FeedRequest, from wire.Agent_FeedServer) error {
	to, err := c.client.Feed(from.Context())
	if err != nil {
		return err
	}
	for r := first; ; {
		if to.Send(r) != nil {
			break // the rank reads no more input; CloseAndRecv returns the error
		}
		if r, err = from.Recv(); err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	reply, err := to.CloseAndRecv()
	if err != nil {
		return err
	}
	return from.SendAndClose(reply)
}
