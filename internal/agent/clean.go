package agent

import (
	"context"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/wire"
)

// cleanProcesses is how long Clean waits for the end of processes that it has killed. cleanContainers is how long Clean
// works on containers and images.
const (
	cleanProcesses  = 10 * time.Second
	cleanContainers = time.Minute
)

// Clean implements wire.AgentServer. The reply also has the processes that this agent
// killed when it started.
func (s *server) Clean(ctx context.Context, r *wire.CleanRequest) (*wire.CleanReply, error) {
	l := s.leftovers
	select {
	case <-l.looked:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	killed, left := leftover.End(ctx, os.Getpid(), "", cleanProcesses)
	working, cancel := context.WithTimeout(ctx, cleanContainers)
	defer cancel()
	cleaned, err := box.Clean(working, s.containerd(), time.Duration(r.UnusedMs)*time.Millisecond, false)
	if err != nil {
		cleaned.Problem, cleaned.Hint = err.Error(), failure.Hint(err)
	}
	l.mu.Lock()
	killed = append(l.killed, killed...)
	l.killed, l.left = nil, left
	l.mu.Unlock()
	cleaned.Host, _ = s.settings.get()
	cleaned.Processes, cleaned.Left = cleanedProcesses(killed), cleanedProcesses(left)
	data, err := exact.Marshal(cleaned)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &wire.CleanReply{Cleaned: data}, nil
}

func cleanedProcesses(all []leftover.Process) (list []job.CleanedProcess) {
	for _, p := range all {
		list = append(list, job.CleanedProcess{PID: p.PID, Name: p.Name, State: p.State, Gang: p.Gang})
	}
	return list
}
