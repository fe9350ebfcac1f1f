package ssh

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gangrun/gangrun/internal/bridge"
	"github.com/gangrun/gangrun/launcher"
)

// restLimit bounds how long a host may take to say what an agent has left there.
const restLimit = 5 * time.Second

// rest implements launcher.Link.Rest, by a connection of its own.
func (g *agent) rest(ctx context.Context, want launcher.Rest) error {
	asking, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	c, err := g.agents.Dialer.Dial(asking, g.agents.Target(g.host))
	if err != nil {
		return err
	}
	defer c.Close()
	carrier, said, err := g.ask(asking, c, "rest", want.Gang)
	if err != nil {
		return err
	}
	switch said.state {
	case bridge.Ready:
	case bridge.Gone:
		return nil // it has left nothing
	default:
		return fmt.Errorf("%s: %s", g.host, said.words)
	}
	// A session's end would have to be agreed upon with the host.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := carrier.rest(want, said.boot == g.at.Boot); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if words := brief(carrier.Stderr()); words != "" {
			return fmt.Errorf("%s: %w: %s", g.host, err, words)
		}
		return fmt.Errorf("%s: %w", g.host, err)
	}
	return nil
}

// rest asks a bridge that is ready to hand out what an agent has left. What is there
// after a boot may be less than the ranks had printed.
func (c *carrier) rest(want launcher.Rest, sameBoot bool) error {
	request, err := json.Marshal(want.Have)
	if err != nil {
		return err
	}
	if _, err := c.Write(append(request, '\n')); err != nil {
		return err
	}
	for archive := tar.NewReader(c); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := want.Take(header.Name, sameBoot && header.FileInfo().Mode().Perm() == bridge.Whole, archive); err != nil {
			return err
		}
	}
	word := byte(bridge.TakenGang)
	if want.Last {
		word = bridge.TakenAll
	}
	if _, err := c.Write([]byte{word}); err != nil {
		return err
	}
	// It is here, whatever comes of what is there.
	_, _ = io.Copy(io.Discard, c)
	return nil
}
