package ssh

import (
	"context"
	"errors"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/shell"
)

// Running is a program that Run has started, with a connection of its own.
type Running struct {
	*Process
	conn *Conn
}

// Close ends the program and its connection.
func (r *Running) Close() error { return errors.Join(r.Process.Close(), r.conn.Close()) }

// Run starts the program p with args on a host. If the host lacks the program, Run installs it first. The
// program gets a connection of its own. ctx limits only the start. The caller must close the Running.
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
