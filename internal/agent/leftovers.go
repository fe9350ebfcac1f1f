package agent

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/wire"
)

// leftoverWait is how long look waits for the end of the leftovers that it has killed.
const leftoverWait = time.Second

// leftovers are processes that this agent has found on its host. They belong to gangs whose own
// agents were killed together with their watchdogs.
type leftovers struct {
	looked chan struct{} // closed once the first look is over
	once   sync.Once     // for the first look

	mu     sync.Mutex
	killed []leftover.Process // leftovers that were killed, and not yet reported to a controller
	left   []leftover.Process // leftovers that the last look could not end
}

// look kills processes that earlier gangs have left. run is the run of the gang that is about to start. It is empty if
// it is not known yet.
func (l *leftovers) look(ctx context.Context, run string) {
	killed, left := leftover.End(ctx, os.Getpid(), run, leftoverWait)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed, l.left = append(l.killed, killed...), left
}

// tidy makes the first look, and removes cgroups and temporary files of agents that were killed.
// It is called once.
func (l *leftovers) tidy(ctx context.Context) {
	defer close(l.looked)
	l.look(ctx, "")
	cgroup.EndDead()
	tempfiles.RemoveDead()
}

// Leftovers implements wire.AgentServer.
func (s *server) Leftovers(ctx context.Context, r *wire.LeftoversRequest) (*wire.LeftoversReply, error) {
	run, number, ok := strings.Cut(r.Gang, "/")
	attempt, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%q is not a gang", r.Gang)
	}
	l := s.leftovers
	select {
	case <-l.looked:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	again := attempt > 1 || len(l.left) > 0
	l.mu.Unlock()
	reply := &wire.LeftoversReply{}
	if again { // before attempt 1, no agent can have had an earlier gang of this run
		l.look(ctx, run)
		reply.Living = leftoverMessages(leftover.Read(os.Getpid()).Alive(os.Getpid(), r.Gang))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	reply.Ended, reply.Living = leftoverMessages(l.killed), append(reply.Living, leftoverMessages(l.left)...)
	l.killed = nil
	return reply, nil
}

func leftoverMessages(processes []leftover.Process) (all []*wire.Leftover) {
	for _, p := range processes {
		all = append(all, &wire.Leftover{Pid: int32(p.PID), Name: []byte(p.Name), State: p.State, Gang: p.Gang})
	}
	return all
}
