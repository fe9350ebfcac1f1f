package wireup

import (
	"context"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// None is the wire-up of ranks that find each other without gangrun's help, as the ranks of torch.distributed
// do by variables of their environment.
type None struct{ watch *Watch }

// NewNone returns the wire-up of a gang.
func NewNone(g *gang.Gang) *None { return &None{NewWatch(g, State{}, true)} }

// Serve implements gang.Wireup.
func (n *None) Serve(ctx context.Context, requests <-chan *wire.GangRequest) {
	n.watch.Run(ctx, requests)
}

// Equip implements gang.Wireup.
func (*None) Equip(*gang.Command) error { return nil }

// Settle implements gang.Wireup.
func (*None) Settle(int, <-chan struct{}) {}

// Phase implements gang.Wireup.
func (*None) Phase(int) job.RankPhase { return job.PhaseUnknown }

// Mark implements gang.Wireup.
func (*None) Mark(*job.Exit) {}
