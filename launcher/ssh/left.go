package ssh

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

const (
	// fetchLimit is how long a host may take to find the output that an agent has left there.
	fetchLimit = retryLimit
	// whyLimit is how long a bridge that has failed may take to say why.
	whyLimit = time.Second
)

// fetch fetches the output that the agent has left on its host. It makes its own connection for that. It implements
// agents.Link.Rest.
func (g *agent) fetch(ctx context.Context, want agents.RestRequest) error {
	asking, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	c, err := g.agents.Dialer.Dial(asking, g.host)
	if err != nil {
		return err
	}
	defer c.Close()
	b, said, err := g.findLeft(asking, c, want.Gang)
	if err != nil || said.state == bridge.Gone { // the agent has left nothing
		return err
	}
	// Ending only the process would need the cooperation of the host.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err = b.fetch(want, said.boot == g.at.Boot); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", g.host, context.Cause(ctx))
	}
	why, stopWaiting := context.WithTimeout(ctx, whyLimit) // the message of the bridge may not have arrived yet
	defer stopWaiting()
	defer context.AfterFunc(why, func() { _ = b.process.Close() })()
	_, _ = b.Wait()
	if words := brief(b.Stderr()); words != "" {
		return fmt.Errorf("%s: %w: %s", g.host, err, words)
	}
	return fmt.Errorf("%s: %w", g.host, err)
}

// findLeft runs a bridge that finds the output that the agent has left of a gang. If the agent is ending, findLeft
// waits for its end.
func (g *agent) findLeft(ctx context.Context, c *Conn, gang string) (*bridgeProcess, answer, error) {
	for {
		b, said, err := g.ask(ctx, c, "rest", gang)
		if err != nil || said.state == bridge.Ready || said.state == bridge.Gone {
			return b, said, err
		}
		_ = b.process.Close() // this closes only the process; the connection stays open
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return nil, said, fmt.Errorf("%s: %s", g.host, said.words)
		}
	}
}

// fetch fetches the output that an agent has left, from a bridge that is ready. If the host was booted in the meantime,
// the output may be less than the ranks have printed.
func (b *bridgeProcess) fetch(want agents.RestRequest, sameBoot bool) error {
	request, err := json.Marshal(want.Have)
	if err != nil {
		return err
	}
	if _, err := b.Write(append(request, '\n')); err != nil {
		return err
	}
	if err := takeLeft(b, want, sameBoot); err != nil {
		return err
	}
	taken := byte(bridge.TakenThese)
	if want.Last {
		taken = bridge.TakenAll
	}
	if _, err := b.Write([]byte{taken}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, b) // everything has arrived, so an error does not matter
	return nil
}

// takeLeft passes the files that a bridge sends to want.Take.
func takeLeft(from io.Reader, want agents.RestRequest, sameBoot bool) error {
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
