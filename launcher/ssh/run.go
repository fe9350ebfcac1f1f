package ssh

import (
	"context"
	"errors"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/shell"
)

// Running is a program that Run has started. Its Close ends the connection that it has for itself.
type Running struct {
	*Process
	conn *Conn
}

// Close ends the program and its connection.
func (r *Running) Close() error { return errors.Join(r.Process.Close(), r.conn.Close()) }

// Run installs p on a host, if it is not there, and starts it with arguments, over a connection of
// its own. ctx limits only the start. The caller must close what Run returns.
func (a *Agents) Run(ctx context.Context, host string, p Program, args ...string) (*Running, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, host)
	if err != nil {
		return nil, err
	}
	path, _, err := install(ctx, c, p)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	words := []string{"exec", shell.Quote(path)}
	for _, arg := range args {
		words = append(words, shell.Quote(arg))
	}
	process, err := c.Run(ctx, strings.Join(words, " "))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Running{process, c}, nil
}
