package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/agents"
)

// Image is the image of a job.
type Image struct {
	Name string // its full name in the stores of the hosts
	// Open opens an archive of the image, and returns the archive's size in bytes. If Open is
	// nil, hosts that lack the image pull it from its registry.
	Open func() (io.ReadCloser, int64, error)
	// User and Secret are the credentials for the registry. If they are empty, the hosts do not log in.
	User, Secret string
	// Progress is called while the archive is sent to a host. sent is the number of bytes sent so far, and total is
	// the number of all bytes. Progress may be nil.
	Progress func(host string, sent, total int64)
}

// images has what hosts have reported about the image.
type images struct {
	mu    sync.Mutex
	facts map[*agents.Agent]job.ImageFact
}

// pieceBytes is the size of a piece of an archive.
const pieceBytes = 1 << 20

// image makes a host look for the image of the job. If the host lacks the image, the host pulls it, or gets it from
// this process. image asks each agent once.
func (l *Launcher) image(ctx context.Context, a *agents.Agent) (job.ImageFact, error) {
	l.images.mu.Lock()
	fact, known := l.images.facts[a]
	l.images.mu.Unlock()
	if known {
		return fact, nil
	}
	fact, err := l.askImage(ctx, a)
	if err != nil {
		return fact, fmt.Errorf("prepare the image on host %s: %w", a.Host, a.Failed(ctx, err))
	}
	l.images.mu.Lock()
	defer l.images.mu.Unlock()
	if l.images.facts == nil {
		l.images.facts = map[*agents.Agent]job.ImageFact{}
	}
	l.images.facts[a] = fact
	return fact, nil
}

func (l *Launcher) askImage(ctx context.Context, a *agents.Agent) (fact job.ImageFact, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	image := l.opts.Image
	stream, err := a.Client.Image(ctx)
	if err == nil {
		err = stream.Send(&wire.ImageRequest{Name: image.Name, Archive: image.Open != nil, Pull: image.Open == nil, User: image.User, Secret: image.Secret})
	}
	if err != nil {
		return fact, err
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	sent := make(chan error, 1)
	for {
		reply, err := stream.Recv()
		if err != nil {
			select {
			case failed := <-sent: // failed is why the agent has not received everything
				err = errors.Join(failed, err)
			default:
			}
			return fact, err
		}
		if len(reply.Fact) > 0 {
			return fact, exact.Unmarshal(reply.Fact, &fact)
		}
		if reply.Send {
			sending.Go(func() {
				err := l.sendImage(stream, a.Host)
				if sent <- err; err != nil {
					cancel()
				}
			})
		}
	}
}

// sendImage sends the archive. The agent may have received enough before the end of the archive. It has then replied.
func (l *Launcher) sendImage(stream wire.Agent_ImageClient, host string) error {
	archive, size, err := l.opts.Image.Open()
	if err != nil {
		return err
	}
	defer archive.Close()
	var done int64
	var told time.Time
	tell := func() {
		if l.opts.Image.Progress != nil && time.Since(told) >= progressEvery {
			told = time.Now()
			l.opts.Image.Progress(host, done, size)
		}
	}
	buffer := make([]byte, pieceBytes)
	for {
		n, err := io.ReadFull(archive, buffer)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		if stream.Send(&wire.ImageRequest{Data: buffer[:n], End: last}) != nil {
			return nil // Recv returns the error
		}
		done += int64(n)
		if tell(); last {
			return nil
		}
	}
}

// progressEvery is the time between two calls of Progress for the same host.
const progressEvery = time.Second

// boxFor returns a copy of a container for one host.
func (l *Launcher) boxFor(box *job.Box, gpus []string) job.Box {
	of := *box
	if of.Image = l.opts.Image.Name; l.opts.Tmpdir == nil { // the GPUs of simulated hosts are simulated, too
		of.GPUs = gpus
	}
	return of
}

// uuids returns the UUIDs of the GPUs of a host.
func uuids(h job.Host) (all []string) {
	for _, d := range h.Devices {
		all = append(all, d.UUID)
	}
	return all
}

// ready makes all nodes prepare the image. If a node cannot start containers from the image, the error is a
// *job.UncontainedError.
func (l *Launcher) ready(ctx context.Context, nodes []*node) error {
	return first(agents.Each(len(nodes), func(i int) error {
		fact, err := l.image(ctx, nodes[i].agent)
		if err == nil && fact.Problem != "" {
			err = &job.UncontainedError{Host: nodes[i].agent.Host, Reason: fact.Error}
		}
		return err
	}))
}

// refused returns the outcome of a gang if a host cannot start the containers of the gang.
func refused(a job.Attempt, cannot *job.UncontainedError, emit func(job.Event)) job.Outcome {
	var o job.Outcome
	for _, r := range a.Placement.Ranks {
		e := job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Unstarted, Time: time.Now(), Stopped: true, Text: "another host cannot start its container"}
		if r.Host == cannot.Host {
			e.Stopped, e.Text, e.Reason = false, cannot.Reason, job.ReasonNoContainer
		}
		o.Exits = append(o.Exits, e)
		emit(job.Event{Time: e.Time, Kind: job.KindExit, Attempt: a.Number, Exit: &e})
	}
	return o
}
