package agent

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/snapshot"
	"github.com/gangrun/gangrun/internal/wire"
)

// mostChanged limits how many changed files a FilesReply names.
const mostChanged = 20

// gangFiles has the snapshot of the last Files request.
type gangFiles struct {
	mu   sync.Mutex
	gang string
	last snapshot.Snapshot
}

// replace stores a snapshot, and returns the previous snapshot.
func (f *gangFiles) replace(gang string, now snapshot.Snapshot) (oldGang string, before snapshot.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldGang, before = f.gang, f.last
	f.gang, f.last = gang, now
	return oldGang, before
}

// Files implements wire.AgentServer. The first request for a gang records the state of the files. Each later request
// returns the changes since the previous request.
func (s *server) Files(_ context.Context, r *wire.FilesRequest) (*wire.FilesReply, error) {
	found := snapshot.Take(wire.Strings(r.Dirs), wire.Strings(r.But))
	gang, before := s.files.replace(r.Gang, found)
	if !r.Again {
		return &wire.FilesReply{Partly: found.Partial}, nil
	}
	if gang != r.Gang {
		return nil, status.Errorf(codes.NotFound, "no earlier request has named the directories of gang %q", r.Gang)
	}
	reply := &wire.FilesReply{Partly: before.Partial || found.Partial}
	for i, path := range before.Changes(found) {
		switch {
		case i >= mostChanged:
			reply.More++
		case before.Has(path):
			reply.Changed = append(reply.Changed, []byte(path))
		default:
			reply.Made = append(reply.Made, []byte(path))
		}
	}
	return reply, nil
}
