package agent

import "github.com/gangrun/gangrun/internal/wire"

// Output implements wire.AgentServer.
func (s *server) Output(r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	if c := s.containedFor(r.Gang); c != nil {
		return forwardOutput(c, r, to)
	}
	g, err := s.gangs.wait(to.Context(), r.Gang)
	if err != nil {
		return err
	}
	return g.streams.CopyOutput(to.Context(), r, to.Send) // Send copies the piece before it returns
}
