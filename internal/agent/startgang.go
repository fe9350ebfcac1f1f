package agent

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/report"
	watchsaves "github.com/gangrun/gangrun/internal/agent/saves"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/wire"
)

// Gang implements wire.AgentServer.
func (s *server) Gang(stream wire.Agent_GangServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return status.Error(codes.InvalidArgument, "the first request starts no gang")
	}
	g, err := s.startGang(start)
	if err != nil {
		return err
	}
	// This goroutine ends with the stream's context, which ends when the handler returns. So the handler cannot wait
	// for the goroutine. The goroutine holds no resources.
	go func() {
		if s.link.dir == "" {
			defer g.cancel() // the controller is gone
		}
		for {
			r, err := stream.Recv()
			if err != nil || !g.take(r) {
				return
			}
		}
	}()
	return g.reports.Send(stream.Context(), stream)
}

// startedGang is a gang that this agent has started.
type startedGang struct {
	take    func(*wire.GangRequest) bool // passes a request to the gang; returns false if the gang takes no more
	reports *report.Queue
	streams streams            // input and output of the gang's ranks; nil if a contained agent has them
	cancel  context.CancelFunc // ends the gang as if the controller were gone
}

// streams are the input and output of a gang's ranks.
type streams interface {
	Stdin(ctx context.Context, rank int) (*os.File, error)
	CopyOutput(ctx context.Context, want *wire.OutputRequest, send func(*wire.OutputReply) error) error
}

// startGang starts a gang. If this host is not the controller's machine, and an earlier controller has started the gang
// of that name, startGang returns that gang. A request without ranks asks only for such a gang.
func (s *server) startGang(start *wire.Start) (*startedGang, error) {
	s.gangs.mu.Lock()
	before := s.gangs.started[start.Gang]
	s.gangs.mu.Unlock()
	if before != nil && s.link.dir != "" {
		return before, nil
	}
	if c := s.containedFor(start.Gang); c != nil {
		return s.startForwarded(c, start)
	}
	s.retire()
	host, env := s.settings.get()
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	if len(start.Ranks) == 0 {
		return nil, status.Errorf(codes.NotFound, "this agent has not started gang %q", start.Gang)
	}
	if s.gangs.busy {
		return nil, errBusy
	}
	spooled := len(start.LogDir) == 0 || start.Spooled
	logs, err := s.logDir(start.Gang, string(start.LogDir))
	if err != nil {
		return nil, err
	}
	start.LogDir = []byte(logs)
	if start.OomFirst {
		s.children.KillFirst()
	}
	_ = leftover.Set(start.Gang) // fails only if somebody has set a lower hard limit
	ctx, cancel := context.WithCancel(s.life)
	g := gang.New(gang.Config{
		Host: host, Start: start, Env: environ.Overlay(env, wire.Strings(start.Env)), Spooled: spooled,
		Children: s.children, Group: s.group, Reports: &report.Queue{Keep: s.link.dir != ""},
	})
	if start.WatchSaves && len(start.CheckpointDir) > 0 {
		g.Saves = func(ctx context.Context, steps func() [][]saves.Step) {
			watchsaves.Watch(ctx, watchsaves.Options{Host: host, Dir: string(start.CheckpointDir), LocalOnly: start.WatchLocal, Steps: steps, Emit: g.Reports.Event})
		}
	}
	started := &startedGang{take: g.Take, reports: g.Reports, streams: g, cancel: cancel}
	s.gangs.add(start.Gang, started)
	s.running.Go(func() {
		defer cancel()
		unreaped := g.Run(ctx, newWireup(g))
		g.Done()
		s.gangs.dismiss() // before the last report, because the controller may start the next gang at once
		g.Reports.Done(unreaped)
	})
	return started, nil
}

// logDir returns the directory for the logs of a gang. That is named. If named is empty, logDir makes a directory below
// the agent's own directory, and returns it.
func (s *server) logDir(gang, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	dir := filepath.Join(s.link.dir, bridge.SpoolName, filepath.FromSlash(gang))
	if s.link.dir == "" || !filepath.IsLocal(filepath.FromSlash(gang)) {
		return "", status.Error(codes.InvalidArgument, "no directory for the logs is named")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", status.Error(codes.ResourceExhausted, err.Error())
	}
	return dir, nil
}

// Feed implements wire.AgentServer.
func (s *server) Feed(stream wire.Agent_FeedServer) error {
	var stdin *os.File
	interrupt := func() bool { return true }
	defer func() {
		interrupt()
		if stdin != nil {
			_ = stdin.Close()
		}
	}()
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&wire.FeedReply{})
		}
		if err != nil {
			return err
		}
		if c := s.containedFor(r.Gang); c != nil && stdin == nil {
			return forwardFeed(c, r, stream)
		}
		if stdin == nil {
			g, err := s.gangs.wait(stream.Context(), r.Gang)
			if err != nil {
				return err
			}
			if stdin, err = g.streams.Stdin(stream.Context(), int(r.Rank)); err != nil {
				return err
			}
			// A rank that does not read must not delay a controller that takes over.
			interrupt = context.AfterFunc(stream.Context(), func() { _ = stdin.SetWriteDeadline(time.Unix(1, 0)) })
		}
		if _, err := stdin.Write(r.Data); err != nil {
			return stream.SendAndClose(&wire.FeedReply{}) // the rank reads no more input
		}
	}
}
