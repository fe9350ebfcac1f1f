package agent

import (
	"context"

	"github.com/gangrun/gangrun/internal/wire"
)

// Keep implements wire.AgentServer.
func (s *server) Keep(context.Context, *wire.KeepRequest) (*wire.KeepReply, error) {
	s.link.keep.Store(true)
	return &wire.KeepReply{}, nil
}
