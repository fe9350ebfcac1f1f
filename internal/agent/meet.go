package agent

import (
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/meet"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/wire"
)

// Meet implements wire.AgentServer.
func (s *server) Meet(stream wire.Agent_MeetServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if len(first.Secret) == 0 {
		return status.Error(codes.InvalidArgument, "the first request has no secret")
	}
	host, _ := s.settings.get()
	m := meet.Open(host, first.Address, string(first.Dir), first.Secret)
	defer m.Close()
	if err := stream.Send(&wire.MeetReply{Port: m.Peer.Port, Error: m.Peer.Error, Wrote: m.Peer.Wrote}); err != nil {
		return err
	}
	for { // until the controller ends the meeting, other hosts may ask this host
		r, err := stream.Recv()
		if err != nil {
			return withoutEOF(err)
		}
		reply := &wire.MeetReply{}
		if r.Link != nil {
			reply.Speeds, err = exact.Marshal(m.Link(stream.Context(), r.Link))
		} else {
			reach, shared := m.Look(stream.Context(), r.Peers)
			if reply.Reach, err = exact.Marshal(reach); err == nil && shared != nil {
				reply.Shared, err = exact.Marshal(shared)
			}
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// withoutEOF returns nil for io.EOF. It returns any other error unchanged.
func withoutEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
