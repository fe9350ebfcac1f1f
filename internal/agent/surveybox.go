package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// surveyBox makes an agent in a separate container answer a survey. The container ends after the survey.
func (s *server) surveyBox(ctx context.Context, gang string, ask job.Survey) (*wire.SurveyReply, error) {
	host, _ := s.settings.get()
	select {
	case s.surveyed <- struct{}{}:
	case <-ctx.Done():
		return nil, status.Error(codes.Aborted, "the container of an earlier survey has not ended")
	}
	starting, cancel := context.WithTimeout(ctx, containLimit)
	defer cancel()
	c, err := s.newBox(starting, gang, host, "", *ask.Box)
	if err != nil {
		<-s.surveyed
	}
	if err != nil && ctx.Err() != nil {
		return nil, status.Error(codes.Aborted, err.Error())
	}
	var facts job.Facts
	if err != nil {
		image := box.Problem(ask.Box.Image, err)
		facts = job.Facts{Host: host, Image: &image}
	} else {
		defer s.running.Go(func() { c.close(); <-s.surveyed }) // the survey does not wait for the end of the container
		ask.Workdir = cmp.Or(ask.Workdir, c.room.(boxRoom).Workdir())
		jobDir := ask.Box.Dir
		ask.Box = nil
		data, err := exact.Marshal(ask)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		reply, err := c.client.Survey(ctx, &wire.SurveyRequest{Survey: data})
		if err != nil {
			return nil, status.Error(codes.Aborted, err.Error())
		}
		if err := exact.Unmarshal(reply.Facts, &facts); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		seeHost(&facts, ask.Workdir, jobDir)
		if facts.Image, err = entryFact(ctx, c, ask); err != nil {
			return nil, status.Error(codes.Aborted, err.Error())
		}
	}
	data, err := exact.Marshal(facts)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &wire.SurveyReply{Facts: data}, nil
}

// seeHost records which of the paths that are missing in a container exist on this host. A path that is relative to the
// ranks' working directory may also exist in the job's working directory on the host.
func seeHost(f *job.Facts, ranks, host string) {
	paths := []*job.PathFact{&f.Workdir, &f.Program.PathFact}
	if f.Script != nil {
		paths = append(paths, &f.Script.PathFact)
	}
	if f.Check != nil {
		paths = append(paths, &f.Check.PathFact)
	}
	for i := range f.Inputs {
		paths = append(paths, &f.Inputs[i])
	}
	for _, p := range paths {
		if p.Kind != job.ErrorMissing || !filepath.IsAbs(p.Path) {
			continue
		}
		if _, err := os.Stat(p.Path); err == nil {
			p.HostPath, p.Mount = p.Path, p.Path
		} else if below, err := filepath.Rel(ranks, p.Path); err == nil && below != "." && filepath.IsLocal(below) {
			if _, err := os.Stat(filepath.Join(host, below)); err == nil {
				p.HostPath, p.Mount = filepath.Join(host, below), host
			}
		}
	}
}

// entryFact returns an ImageFact with a problem if the entry point of the image cannot be executed in the container.
func entryFact(ctx context.Context, c *contained, ask job.Survey) (*job.ImageFact, error) {
	box := c.room.(boxRoom)
	entry := box.Entrypoint()
	if len(entry) == 0 {
		return nil, nil
	}
	data, err := exact.Marshal(job.Survey{Command: entry, Workdir: ask.Workdir, Env: ask.Env})
	if err != nil {
		return nil, err
	}
	reply, err := c.client.Survey(ctx, &wire.SurveyRequest{Survey: data})
	if err != nil {
		return nil, err
	}
	var facts job.Facts
	if err := exact.Unmarshal(reply.Facts, &facts); err != nil || facts.Program.Executable {
		return nil, err
	}
	return &job.ImageFact{Name: box.Image(), Problem: job.ImageEntry,
		Error: fmt.Sprintf("the entry point %q of the image cannot be executed: %s", entry[0], cmp.Or(facts.Program.Error, "it is not a program"))}, nil
}
