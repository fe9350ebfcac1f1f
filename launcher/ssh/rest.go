package ssh

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/launcher"
)

// restLimit bounds how long a host may take to say what an agent has left there, and
// whyLimit how long a bridge that has failed may take to say why.
const (
	restLimit = retryLimit
	whyLimit  = time.Second
)

// rest implements launcher.Link.Rest, by a connection of its own.
func (g *agent) rest(ctx context.Context, want launcher.Rest) error {
	asking, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	c, err := g.agents.Dialer.Dial(asking, g.agents.Target(g.host))
	if err != nil {
		return err
	}
	defer c.Close()
	carrier, said, err := g.remains(asking, c, want.Gang)
	if err != nil || said.state == bridge.Gone { // it has left nothing
		return err
	}
	// A session's end would have to be agreed upon with the host.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err = carrier.rest(want, said.boot == g.at.Boot); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", g.host, context.Cause(ctx))
	}
	select { // its words may be on their way
	case <-carrier.ended:
	case <-time.After(whyLimit):
	case <-ctx.Done():
	}
	if words := brief(carrier.Stderr()); words != "" {
		return fmt.Errorf("%s: %w: %s", g.host, err, words)
	}
	return fmt.Errorf("%s: %w", g.host, err)
}

// remains asks a host for what an agent has left of a gang. One that is ending is waited
// for.
func (g *agent) remains(ctx context.Context, c *Client, gang string) (*carrier, answer, error) {
	for {
		carrier, said, err := g.ask(ctx, c, "rest", gang)
		if err != nil || said.state == bridge.Ready || said.state == bridge.Gone {
			return carrier, said, err
		}
		_ = carrier.Session.Close() // and not the connection
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return nil, said, fmt.Errorf("%s: %s", g.host, said.words)
		}
	}
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
	if err := takeRest(c, want, sameBoot); err != nil {
		return err
	}
	word := byte(bridge.TakenThese)
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

// takeRest takes what a bridge hands out, up to its end.
func takeRest(from io.Reader, want launcher.Rest, sameBoot bool) error {
	taken := map[string]bool{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case header.Name == bridge.End:
			return nil
		case taken[header.Name] || header.Typeflag != tar.TypeReg || len(header.PAXRecords) > 0:
			return fmt.Errorf("%q is not what was asked for", header.Name)
		}
		taken[header.Name] = true
		if err := want.Take(header.Name, sameBoot && header.FileInfo().Mode().Perm() == bridge.Whole, archive); err != nil {
			return err
		}
	}
}
