package agent

import (
	"context"
	"encoding/json"

	"github.com/gangrun/gangrun/internal/wire"
)

// Devices implements wire.AgentServer.
func (s *server) Devices(ctx context.Context, r *wire.DevicesRequest) (*wire.DevicesReply, error) {
	name, env := s.settings.get()
	found, problems, driven, err := s.devices.Read(ctx, name, string(r.Nvml), env)
	if err != nil {
		return nil, err
	}
	host, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	findings, err := json.Marshal(problems)
	return &wire.DevicesReply{Host: host, Findings: findings, Driven: driven}, err
}
