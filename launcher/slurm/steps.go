// Package slurm starts a server of gangrun on each node of a Slurm job by means of srun, and connects to the
// servers. The processes that a server starts are in the cgroups of the Slurm job. They can use the devices of
// the job on that node, and end with the job.
package slurm

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshclient"
	"github.com/gangrun/gangrun/internal/remote/stepserver"
)

// Options are the settings of Steps.
type Options struct {
	// Program is the path of gangrun on this machine. A node uses the same path if it has the same file there.
	Program string
	// Dir is the directory of the run. Steps stores there what a later controller needs to
	// reach the servers.
	Dir string
	// Nodes are the nodes of the job.
	Nodes []string
	// Grace is how long a server without ranks waits for a controller before it ends.
	Grace time.Duration
	// Starts is how often Slurm may start the job in all. If the node that runs the script of the job fails,
	// and Slurm has started the job fewer times than Starts, a server makes Slurm queue the job again. If
	// Starts is 0, no server does that.
	Starts int
	// Srun is the path of srun; empty means "srun".
	Srun string
	// Signal is called once for each signal that Slurm sends, however many servers receive it. Ended is called if
	// srun ends before Close was called. Signal and Ended must not block. Each may be nil.
	Signal func(syscall.Signal)
	Ended  func()
}

// Steps are the servers on the nodes of a job.
type Steps struct {
	options Options
	key     ed25519.PrivateKey
	dialer  sshclient.Dialer

	mu      sync.Mutex
	steps   []*step
	servers map[string]stepserver.Report // the newest report of each node
	closing bool
	changed chan struct{} // closed and replaced when a server has reported itself, or when a step has ended
}

// watch reads the output of the servers of a step at these intervals: at watchEvery until all servers have reported
// themselves, and then at signalEvery.
const (
	watchEvery  = 10 * time.Millisecond
	signalEvery = 200 * time.Millisecond
)

// Open returns the Steps of a run. It starts no server.
func Open(o Options) (*Steps, error) {
	s := &Steps{options: o, servers: map[string]stepserver.Report{}, changed: make(chan struct{})}
	if err := os.Mkdir(s.path(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	var err error
	if s.key, err = loadKey(s.path("key")); err != nil {
		return nil, fmt.Errorf("the key of the run's servers: %w", err)
	}
	outputs, err := filepath.Glob(s.path("*.out"))
	if err != nil {
		return nil, err
	}
	slices.Sort(outputs)
	for _, file := range outputs { // outputs of an earlier controller
		for _, r := range reports(printed(file)) {
			s.servers[r.Node] = r
		}
	}
	return s, nil
}

func (s *Steps) path(names ...string) string {
	return filepath.Join(append([]string{s.options.Dir, "steps"}, names...)...)
}

// loadKey reads the private key of the run. If there is none, loadKey makes it.
func loadKey(path string) (ed25519.PrivateKey, error) {
	seed, err := os.ReadFile(path)
	if err == nil && len(seed) == ed25519.SeedSize {
		return ed25519.NewKeyFromSeed(seed), nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s has %d bytes, want %d", path, len(seed), ed25519.SeedSize)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(path, key.Seed(), 0o600)
}

// printed returns the lines that the servers have printed into the output file of a step, without Mark.
func printed(file string) (all []string) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if _, rest, ok := strings.Cut(line, stepserver.Mark); ok && strings.HasSuffix(line, "\n") {
			all = append(all, rest)
		}
	}
	return all
}

// reports returns the reports in the lines that servers have printed.
func reports(printed []string) (all []stepserver.Report) {
	for _, text := range printed {
		if r, err := stepserver.ParseReport(text); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// Client connects to the server on a node, and starts the server if there is none. The first
// call starts the servers of all nodes.
func (s *Steps) Client(ctx context.Context, node string) (*sshclient.Client, error) {
	if !slices.Contains(s.options.Nodes, node) {
		return nil, fmt.Errorf("%s is not a node of this job", node)
	}
	for tried := (stepserver.Report{}); ; {
		r, err := s.server(ctx, node, tried)
		if err != nil {
			return nil, err
		}
		c, err := s.connect(ctx, r)
		if err == nil {
			return c, nil
		}
		if !ended(err) || tried.Port != 0 {
			return nil, err
		}
		tried = r // the server has ended, so start another
	}
}

// ended reports whether an error of connect means that the server has ended.
func ended(err error) bool {
	var dial *sshclient.DialError
	return errors.As(err, &dial) && (dial.Reason == sshclient.DialRefused || dial.Reason == sshclient.DialClosed)
}

// connect connects to a server, at the name of its node or at one of its addresses.
func (s *Steps) connect(ctx context.Context, r stepserver.Report) (*sshclient.Client, error) {
	var failed error
	for _, address := range append([]string{r.Node}, r.Addresses...) {
		c, err := s.dialer.DialServer(ctx, sshclient.Server{Name: r.Node, Address: address, Port: r.Port, User: "gangrun", HostKey: r.HostKey, Key: s.key})
		if err == nil {
			return c, nil
		}
		if failed == nil || !ended(failed) { // that the server has ended counts most
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// server returns the report of the server on a node, unless that is tried. If there is no other report, it starts
// servers. The first step starts a server on all nodes that have none. Later steps start one on this node.
func (s *Steps) server(ctx context.Context, node string, tried stepserver.Report) (stepserver.Report, error) {
	for {
		s.mu.Lock()
		r, ok := s.servers[node]
		if ok && !(r.Port == tried.Port && string(r.HostKey) == string(tried.HostKey)) {
			s.mu.Unlock()
			return r, nil
		}
		running, failed := s.stepOf(node)
		if running == nil && (failed == nil || len(failed.nodes) > 1) {
			nodes := []string{node}
			if len(s.steps) == 0 && tried.Port == 0 {
				nodes = slices.DeleteFunc(slices.Clone(s.options.Nodes), func(n string) bool { _, has := s.servers[n]; return has })
			}
			if err := s.start(nodes); err != nil {
				s.mu.Unlock()
				return r, err
			}
		} else if running == nil {
			failed.taken = true // the next call starts a server again
			s.mu.Unlock()
			return r, failed.failure(node)
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return r, fmt.Errorf("srun has not started a server on %s: %w", node, context.Cause(ctx))
		}
	}
}

// stepOf returns the newest step that includes the node and in which no server on the node has reported itself. If the
// step runs, it is in running. If the step has ended and its failure has not been returned yet, it is in failed. The
// caller holds s.mu.
func (s *Steps) stepOf(node string) (running, failed *step) {
	for _, st := range slices.Backward(s.steps) {
		if !slices.Contains(st.nodes, node) {
			continue
		}
		switch {
		case st.reported[node] || st.taken:
			return nil, nil
		case !st.over():
			return st, nil
		}
		return nil, st
	}
	return nil, nil
}

// Close tells the servers to end, and waits until their job steps have ended. If a server still has processes
// after a few seconds, or does not answer, Close ends its job step.
func (s *Steps) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	steps := slices.Clone(s.steps)
	servers := maps.Clone(s.servers)
	s.mu.Unlock()
	var wg sync.WaitGroup
	asking, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for _, r := range servers {
		wg.Go(func() {
			c, err := s.connect(asking, r)
			if err != nil {
				return // the server has ended, or its step is ended below
			}
			defer c.Close()
			if session, err := c.Exec(asking, stepserver.End); err == nil {
				_, _ = session.Wait()
			}
		})
	}
	wg.Wait()
	var errs []error
	for _, st := range steps {
		errs = append(errs, st.end())
	}
	return errors.Join(errs...)
}
