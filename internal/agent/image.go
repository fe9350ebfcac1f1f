package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/container"
)

// Image implements wire.AgentServer.
func (s *server) Image(stream wire.Agent_ImageServer) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	fact, err := s.findImage(ctx, first, stream)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		*fact = box.Problem(first.Name, err)
	}
	data, err := exact.Marshal(fact)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return stream.Send(&wire.ImageReply{Fact: data})
}

// findLimit limits the time in which containerd must say whether it has an image.
const findLimit = 30 * time.Second

// findImage finds an image on this host, or imports it from the controller, and makes it ready for
// containers.
func (s *server) findImage(ctx context.Context, want *wire.ImageRequest, stream wire.Agent_ImageServer) (*job.ImageFact, error) {
	fact := &job.ImageFact{Name: want.Name}
	runtime, err := container.Open(ctx, s.containerd()...)
	if err != nil {
		return fact, err
	}
	defer runtime.Close()
	fact.Runtime = "containerd " + runtime.Version
	finding, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	image, err := runtime.Find(finding, want.Name)
	_, missing := errors.AsType[*container.MissingError](err)
	if missing && want.Archive {
		if err := stream.Send(&wire.ImageReply{Send: true}); err != nil {
			return fact, err
		}
		fact.Sent = true
		image, err = runtime.Import(ctx, want.Name, &archive{from: stream})
	}
	if missing && want.Pull {
		fact.Pulled = true
		image, err = runtime.Pull(ctx, want.Name, container.Credentials{User: want.User, Secret: want.Secret})
	}
	if err != nil {
		return fact, err
	}
	fact.Digest, fact.Platform, fact.Bytes = image.Digest.String(), image.Platform, image.Bytes
	return fact, runtime.Unpack(ctx, image)
}

// archive reads the data of an archive from a controller.
type archive struct {
	from wire.Agent_ImageServer
	data []byte
	end  bool
}

// Read implements io.Reader.
func (a *archive) Read(p []byte) (int, error) {
	for len(a.data) == 0 {
		if a.end {
			return 0, io.EOF
		}
		r, err := a.from.Recv()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // the controller is gone
		}
		if err != nil {
			return 0, err
		}
		a.data, a.end = r.Data, r.End
	}
	n := copy(p, a.data)
	a.data = a.data[n:]
	return n, nil
}
