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

// retire ends the contained agent, if there is one, and frees the memory of its layer. The
// output of its gang can no longer be followed, but it is in the log files.
func (s *server) retire() {
	s.gangs.mu.Lock()
	c := s.gangs.contained
	s.gangs.contained = nil
	s.gangs.mu.Unlock()
	if c != nil {
		c.close(s.children)
	}
}

// forwardGang has a contained agent run a gang, and forwards requests and replies.
func (s *server) forwardGang(c *contained, first *wire.GangRequest, stream wire.Agent_GangServer) error {
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
			s.gangs.dismiss() // before the last reply: the controller may start the next gang at once
			dismissed = true
		}
		if err := stream.Send(reply); err != nil || reply.Done != nil {
			return err
		}
	}
}

// forwardOutput forwards the output of ranks from a contained agent.
func forwardOutput(c *contained, r *wire.OutputRequest, to wire.Agent_OutputServer) error {
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

// forwardFeed forwards standard input to a contained agent. first is the request that has
// already been received.
func forwardFeed(c *contained, first *wire.FeedRequest, from wire.Agent_FeedServer) error {
	to, err := c.client.Feed(from.Context())
	if err != nil {
		return err
	}
	for r := first; ; {
		if to.Send(r) != nil {
			break // the rank reads no more; CloseAndRecv returns the error
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
