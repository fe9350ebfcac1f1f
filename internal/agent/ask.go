package agent

import (
	"cmp"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/measure"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/survey"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Survey implements wire.AgentServer.
func (s *server) Survey(ctx context.Context, r *wire.SurveyRequest) (*wire.SurveyReply, error) {
	var ask job.Survey
	if err := exact.Unmarshal(r.Survey, &ask); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if ask.Box != nil {
		return s.surveyBox(ctx, r.Gang, ask)
	}
	host, env := s.settings.get()
	surveyor := survey.Surveyor{Host: host, Env: environ.Overlay(env, ask.Env), Children: s.children}
	facts, err := exact.Marshal(surveyor.Survey(ctx, ask))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &wire.SurveyReply{Facts: facts}, nil
}

// Measure implements wire.AgentServer.
func (s *server) Measure(ctx context.Context, r *wire.MeasureRequest) (*wire.MeasureReply, error) {
	var ask job.Measure
	if err := exact.Unmarshal(r.Measure, &ask); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if r.Spool {
		ask.LogDir = s.link.dir
	}
	host, env := s.settings.get()
	m := measure.Measurer{Host: host, Memory: layerSize(), Env: environ.Overlay(env, ask.Env), Children: s.children}
	speeds, err := exact.Marshal(m.Speeds(ctx, ask))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &wire.MeasureReply{Speeds: speeds}, nil
}

// Library implements wire.AgentServer.
func (s *server) Library(ctx context.Context, r *wire.LibraryRequest) (*wire.LibraryReply, error) {
	if c := s.containedFor(r.Gang); c != nil {
		if b, ok := c.room.(boxRoom); ok {
			r.Workdir = []byte(cmp.Or(string(r.Workdir), b.Workdir()))
			return c.client.Library(ctx, r)
		}
	}
	_, env := s.settings.get()
	env = environ.Overlay(env, wire.Strings(r.Env))
	argv := wire.Strings(r.Argv)
	if len(argv) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no program is named")
	}
	path, err := process.LookPath(argv[0], string(r.Workdir), env)
	if err != nil {
		return &wire.LibraryReply{}, nil // the start of the program will report the error
	}
	mpi, library := mpilib.Of(path, env)
	if module := (survey.Surveyor{Env: env, Children: s.children}).MPI4py(ctx, argv, string(r.Workdir), path); mpi == "" && module != "" {
		mpi, library = mpilib.Of(module, env)
	}
	return &wire.LibraryReply{Mpi: string(mpi), Library: []byte(library), Python: survey.IsPython(argv[0], path)}, nil
}
