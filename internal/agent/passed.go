package agent

import (
	"context"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/wire"
)

// containedFor returns the contained agent that runs a gang, nil where none does.
func (s *server) containedFor(gang string) *contained {
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	if s.gangs.contained == nil || s.gangs.contained.gang != gang {
		return nil
	}
	return s.gangs.contained
}

// retire ends the contained agent, if there is one, and gives its layer's memory back. What
// its gang has printed cannot be followed any more; it is in the log files.
func (s *server) retire() {
	s.gangs.mu.Lock()
	c := s.gangs.contained
	s.gangs.contained = nil
	s.gangs.mu.Unlock()
	if c != nil {
		c.close(s.children)
	}
}

// passGang has a contained agent run a gang.
func (s *server) passGang(c *contained, first *wire.GangRequest, stream wire.Agent_GangServer) error {
	if err := s.gangs.begin(); err != nil {
		return err
	}
	s.running.Add(1)
	defer s.running.Done()
	dismissed := false
	defer func() {
		if !dismissed {
			s.gangs.dismiss()
		}
	}()
	logs, err := s.logDir(c.gang, string(first.GetStart().LogDir))
	if err != nil {
		return err
	}
	first.GetStart().LogDir = []byte(logs)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	to, err := c.client.Gang(ctx)
	if err == nil {
		err = to.Send(first)
	}
	if err != nil {
		return err
	}
	// The receiver ends with the stream's context, which ends when the handler returns.
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				cancel() // the controller has gone
				return
			}
			if to.Send(r) != nil {
				return
			}
		}
	}()
	for {
		reply, err := to.Recv()
		if err != nil {
			return status.Error(codes.Aborted, "the agent of the trial has ended: "+status.Convert(err).Message())
		}
		if reply.Done != nil {
			s.gangs.dismiss() // before the last word: the controller may start the next at once
			dismissed = true
		}
		if err := stream.Send(reply); err != nil || reply.Done != nil {
			return err
		}
	}
}

// passOutput has a contained agent tell what ranks print.
func passOutput(c *contained, r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	from, err := c.client.Output(to.Context(), r)
	if err != nil {
		return err
	}
	for {
		reply, err := from.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = to.Send(reply)
		}
		if err != nil {
			return err
		}
	}
}

// passFeed hands standard input to a contained agent; first is what came already.
func passFeed(c *contained, first *wire.FeedRequest, from wire.Agent_FeedServer) error {
	to, err := c.client.Feed(from.Context())
	if err != nil {
		return err
	}
	for r := first; ; {
		if to.Send(r) != nil {
			break // the rank reads no more, which CloseAndRecv tells
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
